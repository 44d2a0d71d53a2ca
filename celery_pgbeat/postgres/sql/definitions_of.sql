-- Read the periodic tasks of these names.
select * from {schema}.periodic_task
where name = any (%(names)s::text[])
