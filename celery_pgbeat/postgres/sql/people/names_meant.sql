-- Find the periodic tasks that a command line means, by names and by patterns of LIKE; in name order.
--
-- A pattern reads the whole table once: a person waits for it.
select name, enabled, group_paused, managed_by, pause_reason from {schema}.periodic_task
where name = any (%(names)s::text[]) or name like any (%(patterns)s::text[])
order by name
