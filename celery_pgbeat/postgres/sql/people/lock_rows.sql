-- Lock the periodic tasks of these names until the caller's transaction ends; returns the `managed_by` of each.
--
-- In name order, as everywhere where many rows are written.
select name, managed_by from {schema}.periodic_task
where name = any (%(names)s::text[])
order by name
for no key update
