-- Start a job of each of these periodic tasks now; returns the names of those that existed, each with its job.
--
-- All or none, but a row with a job in the way is left out: its job is NULL. The row is locked first, so that no submit
-- makes a job after we looked. In name order, as everywhere where many rows are written; a row that another transaction
-- has locked is waited for, as trigger() does. If that transaction made a job, trigger() refuses: nothing is done.
with held as materialized (
    select name, overlap from {schema}.periodic_task
    where name = any (%(names)s::text[])
    order by name
    for no key update
)
select held.name,
    case
        when %(force)s or held.overlap = 'allow'
            or not exists (select from {schema}.active_job where active_job.periodic_task = held.name)
        then {schema}.trigger(held.name, %(force)s)
    end as job
from held
