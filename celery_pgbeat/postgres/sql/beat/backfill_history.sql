-- Read which occurrences after an instant have had a job, the oldest first, and whether each has failed.
--
-- It reads up to %(most)s jobs of the history. So it also returns the last occurrence up to which all are known (NULL:
-- no more are left). A skipped occurrence has had no job, and a job that a person has triggered is for no occurrence.
with finished as materialized (
    select scheduled_for, state from {schema}.finished_job
    where periodic_task = %(periodic_task)s and scheduled_for > %(after)s and scheduled_for <= %(until)s
        and state <> 'skipped' and origin <> 'manual'
    order by scheduled_for
    fetch first %(most)s rows with ties
),
known as (
    select case when count(*) >= %(most)s then max(scheduled_for) end as until from finished
),
job as (
    select scheduled_for, state from finished
    union all
    select scheduled_for, state from {schema}.active_job
    where periodic_task = %(periodic_task)s and scheduled_for > %(after)s and scheduled_for <= %(until)s
        and origin <> 'manual'
)
select job.scheduled_for,
    bool_or(job.state in ('failed', 'lost', 'expired'))
        and bool_and(job.state in ('failed', 'lost', 'expired', 'revoked')) as failed,
    (select until from known) as known_until
from job
group by job.scheduled_for
order by job.scheduled_for
