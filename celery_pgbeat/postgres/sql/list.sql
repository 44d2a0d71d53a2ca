-- List periodic tasks in name order, a page at a time.
select * from {schema}.periodic_task
where name > %(after)s
    and (%(task)s::text is null or task = %(task)s::text)
    and (%(managed_by)s::text is null or managed_by = %(managed_by)s::text)
    and (%(enabled)s::boolean is null or enabled = %(enabled)s::boolean)
    and (%(with_problem)s::boolean is null or (problem is not null) = %(with_problem)s::boolean)
order by name
limit %(limit)s
