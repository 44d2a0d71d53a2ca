-- Take over up to %(batch)s jobs that no beat sends: given back, made by trigger(), or of a beat whose lease is over.
-- They are sent in the order in which it returns them, that of their occurrences.
--
-- Each job is checked again before it is sent. If its row was removed or paused, or if it is too late, it is recorded
-- as skipped instead. But the pause of a group that keeps its jobs came too late for one that has its turn. Manual and
-- backfill jobs are sent all the same, and so is what the broker has had before (sent again, run again, interrupted). A
-- job that has waited, for another job or for a slot, is late by design: only its catchup_window counts. No job is
-- dropped for a newer occurrence that may itself be skipped in a blackout window. Only the beat can tell whether a
-- window covers this moment, so the windows of such a row are returned with its job.
--
-- What is too late must stay equal to planning/decide.py: `on_time` and `catchup_window` count from when the job was
-- due, `catchup` decides only about what is not on time, and under `latest` the newest one wins.
-- `tests/protocol/test_publish_confirm_recover.py` has the cases.
with candidates as materialized (
    select job.id,
        case
            when job.origin in ('manual', 'backfill') or job.resends > 0 or job.run > 0
                or coalesce(job.sent_at, job.started_at) is not null
                then null
            when task.name is null then 'deleted'
            when not task.enabled or task.group_paused and not (job.waited and exists (
                    select from {schema}.task_group as known
                    where known.name = job.group_name and {schema}.keeps_jobs(known)))
                then 'paused'
            when task.pause_after_failures is not null
                and {schema}.pause_is_due(task.name, task.failures_from, task.pause_after_failures)
                then 'paused'
            when {schema}.now() - coalesce(job.due_at, job.scheduled_for) > task.catchup_window then 'too_late'
            when {schema}.now() - coalesce(job.due_at, job.scheduled_for) > make_interval(secs => %(on_time)s)
                and not job.waited
                and (task.catchup = 'none'
                    or task.catchup = 'latest' and task.next_run_at <= {schema}.now()
                        and (task.blackout is null or task.blackout_action = 'defer'))
                then 'too_late'
        end as reason,
        job.origin in ('manual', 'backfill') or job.resends > 0 or job.run > 0
            or coalesce(job.sent_at, job.started_at) is not null as is_unconditional,
        task.catchup_window,
        task.blackout,
        task.timezone,
        task.windows_used
    from {schema}.active_job as job
    left join {schema}.periodic_task as task on task.name = job.periodic_task
    where job.check_at <= {schema}.now() and job.state = 'pending'
        and not {schema}.is_marked(job.marked_at, coalesce(job.mark_lease, make_interval(secs => %(lease)s)))
        and (task.name is null or not task.lazy or task.name = any (%(lazy_names)s::text[]))
    order by job.check_at, job.created_at
    limit %(batch)s
    for update of job skip locked
),
dropped as (
    delete from {schema}.active_job as job
    using candidates
    where job.id = candidates.id and candidates.reason is not null
    returning job, candidates.reason
),
recorded as (
    insert into {schema}.finished_job
    select final.* from dropped
    cross join lateral {schema}.archived(job, 'skipped', reason, beat => %(beat)s) as final
),
taken as (
    update {schema}.active_job as job
    set marked_by = %(beat)s, marked_at = {schema}.now(), mark_lease = make_interval(secs => %(lease)s),
        beat = %(beat)s,
        sends = least(job.sends + 1, 2000000000),
        -- From the first time on: since when a job has waited to be sent does not depend on how often it was tried.
        busy_until = case
            when job.sends = 0 and starts_with(job.error, 'closed queue: ') is not true
                then {schema}.now() + job.pickup_deadline
            else job.busy_until
        end,
        check_at = {schema}.now() + make_interval(secs => %(lease)s)
    from candidates
    where job.id = candidates.id and candidates.reason is null
    returning job.*, candidates.is_unconditional, candidates.catchup_window, candidates.blackout,
        candidates.timezone, candidates.windows_used
)
select id, periodic_task, scheduled_for, origin, task, queue, message::text,
    {schema}.microseconds(max_run_time) as max_run_time_microseconds, run, null as reason,
    case when not is_unconditional then coalesce(due_at, scheduled_for) end as due_at,
    case when not is_unconditional then {schema}.microseconds(catchup_window) end as catchup_window_microseconds,
    case when not is_unconditional then blackout end as blackout,
    timezone,
    case when not is_unconditional and windows_used is not null then {schema}.windows_of(windows_used)::text end
        as windows,
    sends, tracking
from taken
union all
select (job).id, (job).periodic_task, (job).scheduled_for, (job).origin, (job).task, (job).queue, null,
    {schema}.microseconds((job).max_run_time), (job).run, reason, null, null, null, null, null, (job).sends,
    (job).tracking
from dropped
order by scheduled_for, id
