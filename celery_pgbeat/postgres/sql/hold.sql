-- Hold the periodic tasks of these names until the caller's transaction ends; answers whose they are.
--
-- In name order, as everybody does who writes to many rows.
select name, managed_by from {schema}.periodic_task
where name = any (%(names)s::text[])
order by name
for no key update
