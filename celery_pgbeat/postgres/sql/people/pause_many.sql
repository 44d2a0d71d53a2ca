-- Pause periodic tasks, until a time, for a number of seconds, or until they are resumed; returns the names of those
-- that existed.
--
-- All or none. In name order, as everywhere where many rows are written. It waits for a row that another transaction
-- has locked, as pause() does. It writes what pause() writes, in one go: pause() for each row takes six times as long.
with locked as materialized (
    select name from {schema}.periodic_task
    where name = any (%(names)s::text[])
    order by name
    for no key update
)
update {schema}.periodic_task as stored
set enabled = false,
    pause_reason = %(reason)s::text,
    paused_by = {schema}.acting_person(),
    paused_until = coalesce(%(until)s::timestamptz, {schema}.now() + make_interval(secs => %(seconds)s::float8))
from locked
where stored.name = locked.name
returning stored.name
