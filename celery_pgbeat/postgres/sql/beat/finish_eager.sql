-- Finish pending jobs of this beat whose tasks have run in the beat itself, each in its final state.
with reported as (
    select * from unnest(%(jobs)s::uuid[], %(states)s::text[], %(errors)s::text[])
        with ordinality as reported (id, state, error, place)
),
deleted as (
    delete from {schema}.active_job as job
    using reported
    where job.id = reported.id and job.id = any (%(jobs)s::uuid[])
        and job.state = 'pending' and job.marked_by = %(beat)s
    returning job, reported.*
),
{counted}
insert into {schema}.finished_job
select final.* from deleted
cross join lateral {schema}.archived(job, state, error => error, started_at => {schema}.now()) as final
where (select count(*) from counted) >= 0
returning id
