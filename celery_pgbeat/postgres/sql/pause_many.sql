-- Pause periodic tasks, until a time or until they are resumed; returns the names of those that existed.
--
-- All or none. In name order, as everywhere where many rows are written; a row that
-- another transaction has locked is waited for, as pause() does. It writes what pause() writes, in one go: pause() for
-- each row takes six times as long.
with held as materialized (
    select name from {schema}.periodic_task
    where name = any (%(names)s::text[])
    order by name
    for no key update
)
update {schema}.periodic_task as stored
set enabled = false,
    pause_reason = %(reason)s::text,
    paused_by = session_user,
    paused_until = %(until)s::timestamptz
from held
where stored.name = held.name
returning stored.name
