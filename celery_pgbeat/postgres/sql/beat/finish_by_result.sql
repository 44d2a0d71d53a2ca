-- Finish jobs that no worker reports, each in the final state that the result backend has.
with reported as (
    select * from unnest(%(jobs)s::uuid[], %(states)s::text[]) with ordinality as reported (id, state, place)
),
deleted as (
    delete from {schema}.active_job as job
    using reported
    where job.id = reported.id and job.id = any (%(jobs)s::uuid[]) and job.tracking = 'result' and job.state = 'sent'
    returning job, reported.*
),
{counted}
insert into {schema}.finished_job
select final.* from deleted
cross join lateral {schema}.archived(job, state) as final
where (select count(*) from counted) >= 0
returning id
