-- Read what code declares and its beats refuse, in name order.
select name, app, reason, seen_at from {schema}.refused_declaration
where (%(pattern)s::text is null or name like %(pattern)s::text)
    and (%(managed_by)s::text is null or app = %(managed_by)s::text)
order by name, app
limit %(limit)s
