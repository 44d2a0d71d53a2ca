-- Record that messages could not be made, or that a broker in reach refused them; the third time a job is lost.
with refused as (
    select * from unnest(%(jobs)s::uuid[], %(errors)s::text[]) as refused (id, error)
),
counted as (
    update {schema}.active_job as job
    set refusals = least(job.refusals + 1, 2000000000), error = refused.error
    from refused
    where job.id = refused.id and job.state = 'pending' and job.marked_by = %(beat)s and job.refusals < 2
    returning job.id
),
deleted as (
    delete from {schema}.active_job as job
    using refused
    where job.id = refused.id and job.state = 'pending' and job.marked_by = %(beat)s and job.refusals >= 2
    returning job, job.id, refused.error as reason_given
),
archived as (
    insert into {schema}.finished_job
    select final.* from deleted
    cross join lateral {schema}.archived(job, 'lost', error => 'unsendable: ' || reason_given) as final
)
select id, false as lost from counted
union all
select id, true from deleted
