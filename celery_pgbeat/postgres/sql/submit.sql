-- Submit the decided occurrences: write the jobs and move the next runs on, fenced by this very mark.
--
-- One statement, in this order of data: fenced (rows that still bear this mark and this next run) ->
-- lapsed (jobs past busy_until that nothing can mend leave the way) -> made (the new jobs) -> skipped
-- (what was wanted but found a job in the way) -> passed (what was never wanted) -> advanced. A row that somebody holds is stepped over and
-- tried again by the same beat while its lease lasts.
--   `made` reads `lapsed` in full: nothing else orders two data-modifying CTEs, and unordered the insert
-- runs first, meets the lapsed job in the unique index, and the tick is skipped for nothing.
--   decided_until > last_run_at: an occurrence is decided once, whatever the clock or the row says.
with planned as materialized (
    select * from unnest(
        %(names)s::text[], %(marked_ats)s::timestamptz[], %(due_ats)s::timestamptz[],
        %(jobs)s::uuid[], %(scheduled_fors)s::timestamptz[], %(origins)s::text[],
        %(passed_firsts)s::timestamptz[], %(passed_lasts)s::timestamptz[], %(passed_counts)s::int[], %(passed_reasons)s::text[],
        %(next_run_ats)s::timestamptz[], %(planned_fors)s::timestamptz[], %(decided_untils)s::timestamptz[],
        %(pickup_deadlines)s::float8[])
        as planned (name, marked_at, due_at, job, scheduled_for, origin, passed_first, passed_last, passed_count, passed_reason,
                    next_run_at, planned_for, decided_until, pickup_deadline)
),
fenced as materialized (
    select task.name, task.task, task.args, task.kwargs, task.queue, task.priority, task.options, task.schedule,
        coalesce(task.timezone, %(timezone)s) as timezone, task.overlap, task.max_run_time, task.on_lost, task.tracking,
        planned.marked_at, task.mark_lease, planned.job, planned.scheduled_for, planned.origin,
        planned.passed_first, planned.passed_last, planned.passed_count, planned.passed_reason,
        planned.next_run_at, planned.planned_for, planned.decided_until,
        make_interval(secs => planned.pickup_deadline) as pickup_deadline
    from {schema}.periodic_task as task
    join planned on planned.name = task.name
    where task.name = any (%(names)s::text[])
        and task.marked_by = %(beat)s
        and task.marked_at = planned.marked_at
        and task.next_run_at = planned.due_at
        and task.enabled
        and planned.decided_until > coalesce(task.last_run_at, '-infinity')
    order by task.name
    for no key update of task skip locked
),
lapsed as (
    delete from {schema}.active_job as job
    where job.id = any (array(
        select id from {schema}.active_job
        where %(judging)s
            and periodic_task = any (array(select name from fenced where job is not null and overlap <> 'allow'))
            and busy_until < {schema}.now()
            and (state = 'submitted' and (resends >= 3 or not %(resending)s)
                or state in ('running', 'retrying') and on_lost = 'mark')
        for update skip locked))
    returning job.*
),
buried as (
    insert into {schema}.finished_job (
        id, periodic_task, scheduled_for, origin, state, task, queue, revival, created_at, submitted_at, started_at,
        finished_at, run, attempt, sends, beat, worker, error, busy_until)
    select id, periodic_task, scheduled_for, origin, 'lost', task, queue,
        case when started_at is null then {schema}.revival_of(lapsed) end,
        created_at, submitted_at, started_at, {schema}.now(), run, attempt, sends, beat, worker,
        'silent since its busy_until', busy_until
    from lapsed
),
made as (
    insert into {schema}.active_job (
        id, periodic_task, scheduled_for, origin, state, exclusive, task, queue, message, on_lost, tracking,
        max_run_time, pickup_deadline, busy_until, sends, marked_by, marked_at, mark_lease, beat)
    select job, name, scheduled_for, origin, 'pending', overlap <> 'allow', task, queue,
        jsonb_build_object('args', args, 'kwargs', kwargs, 'priority', priority, 'options', options,
                           'schedule', schedule, 'timezone', timezone),
        on_lost, tracking, max_run_time, pickup_deadline, {schema}.now() + pickup_deadline, 1,
        %(beat)s, marked_at, mark_lease, %(beat)s
    from fenced
    where job is not null
        and (select count(*) from lapsed) >= 0
        and (overlap = 'allow' or not exists (
            select from {schema}.active_job as other
            where other.periodic_task = fenced.name and other.id not in (select id from lapsed)))
    on conflict do nothing
    returning id, periodic_task
),
skipped as (
    insert into {schema}.finished_job (
        id, periodic_task, scheduled_for, origin, state, reason, blocked_by, task, queue, created_at, finished_at, beat)
    select job, name, scheduled_for, origin, 'skipped', 'overlap',
        (
            select other.id from {schema}.active_job as other
            where other.periodic_task = fenced.name and other.id not in (select id from lapsed)
            order by other.created_at
            limit 1
        ),
        task, queue, {schema}.now(), {schema}.now(), %(beat)s
    from fenced
    where job is not null and not exists (select from made where made.id = fenced.job)
    returning periodic_task, blocked_by
),
passed as (
    insert into {schema}.finished_job (
        id, periodic_task, scheduled_for, last_scheduled_for, occurrences, origin, state, reason, task, queue,
        created_at, finished_at, beat)
    select gen_random_uuid(), name, passed_first, passed_last, passed_count, 'schedule', 'skipped', passed_reason, task, queue,
        {schema}.now(), {schema}.now(), %(beat)s
    from fenced
    where passed_count > 0
),
advanced as (
    update {schema}.periodic_task as task
    set next_run_at = case when outcome.goes_on then outcome.next_run_at end,
        planned_for = case when outcome.goes_on then outcome.planned_for end,
        last_run_at = outcome.decided_until,
        run_count = task.run_count + outcome.runs,
        timezone = outcome.timezone,
        pickup_deadline = outcome.pickup_deadline,
        marked_by = null,
        marked_at = null,
        taken_over = false
    from (
        select fenced.*, (made.id is not null)::int as runs,
            before.max_runs is null or before.run_count + (made.id is not null)::int < before.max_runs as goes_on
        from fenced
        join {schema}.periodic_task as before on before.name = fenced.name
        left join made on made.id = fenced.job
    ) as outcome
    where task.name = outcome.name and task.name = any (%(names)s::text[])
    returning task.name
)
select advanced.name, made.id is not null as made, skipped.blocked_by,
    (select id from lapsed where lapsed.periodic_task = advanced.name limit 1) as lost
from advanced
left join made on made.periodic_task = advanced.name
left join skipped on skipped.periodic_task = advanced.name
