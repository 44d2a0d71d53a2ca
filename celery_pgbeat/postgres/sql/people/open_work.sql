-- Read the tasks for people that are not over, of all persons: what is due first comes first.
with listed as (
    select job as id from {schema}.open_work
    union
    select id from {schema}.active_job where owner is not null
)
select job.id, job.periodic_task, stored.subject, job.task, job.state, job.target, job.owner, job.due_by,
    coalesce(job.due_by < {schema}.now(), false) as overdue, job.scheduled_for, job.created_at, job.started_at,
    job.stop_request
from listed
join {schema}.active_job as job using (id)
left join {schema}.periodic_task as stored on stored.name = job.periodic_task
order by job.due_by, job.scheduled_for, job.id
limit %(limit)s
