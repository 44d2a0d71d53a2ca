-- Submit the decided occurrences that nothing stands in the way of: nearly all of them, nearly always.
--
-- What `submit` does in many steps for any row, in the few steps that such a row takes: Postgres plans a statement anew
-- each time, and that took longer than the work. A row that this leaves untouched (a job stands in the way or came in
-- between, its group has a limit, or somebody holds the row) is `submit`'s. The fence, the order of locks and the answer are the same.
with planned as materialized (
    select planned.*, %(beat)s::text as beat from unnest(
        %(names)s::text[], %(marked_ats)s::timestamptz[], %(due_ats)s::timestamptz[],
        %(jobs)s::uuid[], %(scheduled_fors)s::timestamptz[], %(job_due_ats)s::timestamptz[], %(origins)s::text[],
        %(passed_firsts)s::timestamptz[], %(passed_lasts)s::timestamptz[], %(passed_counts)s::int[], %(passed_reasons)s::text[],
        %(next_run_ats)s::timestamptz[], %(planned_fors)s::timestamptz[], %(decided_untils)s::timestamptz[],
        %(pickup_deadlines)s::float8[])
        as planned (name, marked_at, due_at, job, scheduled_for, job_due_at, origin, passed_first, passed_last, passed_count, passed_reason,
                    next_run_at, planned_for, decided_until, pickup_deadline)
),
fenced as materialized (
    select task.name, task.task, task.args, task.kwargs, task.queue, task.priority, task.options, task.sensitive, task.schedule,
        coalesce(task.timezone, %(timezone)s) as timezone, task.overlap <> 'allow' as exclusive, task.group_name, task.min_gap, task.max_run_time,
        task.pause_after_failures, task.on_lost, case when task.tracking = 'full' then %(full_acts_as)s else task.tracking end as tracking,
        (task.run_count + (planned.job is not null)::int < task.max_runs) is not false as goes_on,
        planned.marked_at, task.mark_lease, planned.job, planned.scheduled_for, planned.job_due_at, planned.origin,
        planned.passed_first, planned.passed_last, planned.passed_count, planned.passed_reason,
        planned.next_run_at, planned.planned_for, planned.decided_until,
        make_interval(secs => planned.pickup_deadline) as pickup_deadline
    from {schema}.periodic_task as task
    join planned on planned.name = task.name
    where task.name = any (%(names)s::text[])
        and task.marked_by = planned.beat
        and task.marked_at = planned.marked_at
        and task.next_run_at = planned.due_at
        and task.enabled and not task.group_paused
        and (task.pause_after_failures is null
            or not {schema}.pause_is_due(task.name, task.failures_from, task.pause_after_failures))
        and planned.decided_until > coalesce(task.last_run_at, '-infinity')
        and (task.overlap = 'allow' or planned.job is null
            or not exists (select from {schema}.active_job as other where other.periodic_task = task.name))
        and (task.group_name is null or planned.job is null
            or not exists (select from {schema}.task_group where name = task.group_name and max_active is not null))
    order by task.name
    for no key update of task skip locked
),
made as (
    insert into {schema}.active_job (
        id, periodic_task, scheduled_for, due_at, origin, state, exclusive, task, queue, message, on_lost, tracking,
        group_name, slot, min_gap, max_run_time, pause_after_failures, pickup_deadline, busy_until, check_at, sends,
        marked_by, marked_at, mark_lease, beat)
    select job, name, scheduled_for, job_due_at, origin, 'pending', exclusive, task, queue,
        jsonb_build_object('args', args, 'kwargs', kwargs, 'priority', priority, 'options', options,
                           'sensitive', sensitive, 'schedule', schedule, 'timezone', timezone),
        on_lost, tracking, group_name, case when group_name is not null then 0 end, min_gap, max_run_time,
        pause_after_failures, pickup_deadline, {schema}.now() + pickup_deadline,
        least(marked_at, {schema}.now()) + mark_lease, 1,
        %(beat)s, marked_at, mark_lease, %(beat)s
    from fenced
    where job is not null
    on conflict do nothing
    returning id
),
free as materialized (
    select * from fenced where job is null or job in (select id from made)
),
passed as (
    insert into {schema}.finished_job (
        id, periodic_task, scheduled_for, last_scheduled_for, occurrences, origin, state, reason, task, queue,
        created_at, finished_at, beat)
    select gen_random_uuid(), name, passed_first, passed_last, passed_count, 'schedule', 'skipped', passed_reason, task, queue,
        {schema}.now(), {schema}.now(), %(beat)s
    from free
    where passed_count > 0
)
update {schema}.periodic_task as task
set next_run_at = case when free.goes_on then free.next_run_at end,
    planned_for = case when free.goes_on then free.planned_for end,
    last_run_at = free.decided_until,
    run_count = task.run_count + (free.job is not null)::int,
    timezone = free.timezone,
    pickup_deadline = free.pickup_deadline,
    marked_by = null,
    marked_at = null,
    taken_over = false
from free
where task.name = free.name
returning task.name, free.job is not null as made
