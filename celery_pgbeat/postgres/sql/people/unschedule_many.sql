-- Remove periodic tasks of any manager; returns the names of those that existed.
--
-- All or none. In name order, as everywhere where many rows are written; a row that another transaction has locked is
-- waited for, as unschedule() does.
with locked as materialized (
    select name from {schema}.periodic_task
    where name = any (%(names)s::text[])
    order by name
    for update
)
delete from {schema}.periodic_task as stored
using locked
where stored.name = locked.name
returning stored.name
