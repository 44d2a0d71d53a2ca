-- List jobs, the latest first.
select * from {schema}.job
where (%(name)s::text is null or periodic_task = %(name)s::text)
    and (%(state)s::text is null or state = %(state)s::text)
order by created_at desc, scheduled_for desc
limit %(limit)s
