-- Take up to %(most)s new tasks for people, of which no beat has told yet; returns them.
--
-- For the signal work_created: once in the cluster, by the beat that takes it. What a person has picked up or cancelled
-- before is not new any more. One row of each job is new, so two beats never take the same job.
with taken as (
    update {schema}.open_work as work
    set is_new = false
    where work.is_new and work.job = any (array(
        select job from {schema}.open_work
        where is_new
        order by job
        limit %(most)s
        for update skip locked))
    returning work.job
)
select job.id, job.periodic_task, job.scheduled_for, job.target, job.due_by
from {schema}.active_job as job
where job.id = any (array(select taken.job from taken))
order by job.scheduled_for, job.id
