-- Start a job of each of these periodic tasks now; returns the names of those that existed, each with its job.
--
-- All or none, but a row that a job blocks is left out: its job is NULL. `lock_rows` has locked the rows before, in the
-- same transaction. So no other transaction makes a job of them, and this statement sees those that were made until
-- then.
select chosen.name,
    case
        when %(force)s or chosen.overlap = 'allow'
            or not exists (select from {schema}.active_job where active_job.periodic_task = chosen.name)
        then {schema}.trigger(chosen.name, %(force)s)
    end as job
from (
    select name, overlap from {schema}.periodic_task
    where name = any (%(names)s::text[])
    order by name
) as chosen
