-- Start a job of each of these periodic tasks now; returns the names of those that existed, each with its job.
--
-- All or none, but a row that a job blocks is left out: its job is NULL. `lock_rows` has locked the rows before, in the
-- same transaction. So no other transaction makes a job of them, and this statement sees those that were made until
-- then.
select chosen.name, started.job
from {schema}.periodic_task as chosen
left join {schema}.trigger_many(
    (
        select jsonb_agg(jsonb_build_object('name', free.name))
        from {schema}.periodic_task as free
        where free.name = any (%(names)s::text[])
            and (%(force)s or free.overlap = 'allow'
                or not exists (select from {schema}.active_job where active_job.periodic_task = free.name))
    ),
    %(force)s) as started using (name)
where chosen.name = any (%(names)s::text[])
order by chosen.name
