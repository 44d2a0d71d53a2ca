-- Submit the decided occurrences that nothing stands in the way of: write the jobs and move the next runs on.
--
-- A function, because that keeps its plan: planning this anew took as long as submitting ten rows. The plan knows
-- neither the table's size nor the batch's, and must serve any: rows are found by index, and what was decided is joined
-- to them by hash, never a thousand compared with a thousand. It is kept from the first time on, for one row as well. An
-- `exists` with `offset 0` is asked of each row: made while the tables are small, it would read all jobs into a hash.
create or replace function {schema}.submit_free(
    beat text, timezone text, full_acts_as text,
    names text[], marked_ats timestamptz[], due_ats timestamptz[],
    jobs uuid[], scheduled_fors timestamptz[], job_due_ats timestamptz[], origins text[],
    skipped_firsts timestamptz[], skipped_lasts timestamptz[], skipped_counts int[], skipped_reasons text[],
    next_run_ats timestamptz[], planned_fors timestamptz[], decided_untils timestamptz[],
    pickup_deadlines double precision[]
) returns table (name text, made boolean)
language plpgsql rows 10
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
    return query
    with planned as materialized (
        select planned.* from unnest(
            submit_free.names, submit_free.marked_ats, submit_free.due_ats,
            submit_free.jobs, submit_free.scheduled_fors, submit_free.job_due_ats, submit_free.origins,
            submit_free.skipped_firsts, submit_free.skipped_lasts, submit_free.skipped_counts, submit_free.skipped_reasons,
            submit_free.next_run_ats, submit_free.planned_fors, submit_free.decided_untils,
            submit_free.pickup_deadlines)
            as planned (name, marked_at, due_at, job, scheduled_for, job_due_at, origin,
                        skipped_first, skipped_last, skipped_count, skipped_reason,
                        next_run_at, planned_for, decided_until, pickup_deadline)
    ),
    fenced as materialized (
        select task.name, task.task, task.args, task.kwargs, task.queue, task.priority, task.options, task.sensitive,
            task.schedule, coalesce(task.timezone, submit_free.timezone) as timezone,
            task.overlap <> 'allow' as exclusive, task.group_name, task.min_gap, task.max_run_time,
            task.pause_after_failures, task.on_lost,
            case when task.tracking = 'full' then submit_free.full_acts_as else task.tracking end as tracking,
            (task.run_count + (planned.job is not null)::int < task.max_runs) is not false as goes_on,
            planned.marked_at, task.mark_lease, planned.job, planned.scheduled_for, planned.job_due_at, planned.origin,
            planned.skipped_first, planned.skipped_last, planned.skipped_count, planned.skipped_reason,
            planned.next_run_at, planned.planned_for, planned.decided_until,
            make_interval(secs => planned.pickup_deadline) as pickup_deadline
        from {schema}.periodic_task as task
        join planned on planned.name = task.name
        where task.name = any (submit_free.names)
            and task.marked_by = submit_free.beat
            and task.marked_at = planned.marked_at
            and task.next_run_at = planned.due_at
            and task.enabled and not task.group_paused
            and (task.pause_after_failures is null
                or not {schema}.pause_is_due(task.name, task.failures_from, task.pause_after_failures))
            and planned.decided_until > coalesce(task.last_run_at, '-infinity')
            and (task.overlap = 'allow' or planned.job is null
                or not exists (
                    select from {schema}.active_job as other where other.periodic_task = task.name
                    offset 0))
            and (task.group_name is null or planned.job is null
                or not exists (
                    select from {schema}.task_group where name = task.group_name and max_active is not null
                    offset 0))
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
            submit_free.beat, marked_at, mark_lease, submit_free.beat
        from fenced
        where job is not null
        on conflict do nothing
        returning id
    ),
    free as materialized (
        select * from fenced where job is null or job in (select id from made)
    ),
    skipped_together as (
        insert into {schema}.finished_job (
            id, periodic_task, scheduled_for, last_scheduled_for, occurrences, origin, state, reason, task, queue,
            created_at, finished_at, beat)
        select gen_random_uuid(), name, skipped_first, skipped_last, skipped_count, 'schedule', 'skipped', skipped_reason,
            task, queue,
            {schema}.now(), {schema}.now(), submit_free.beat
        from free
        where skipped_count > 0
    )
    update {schema}.periodic_task as task
    set next_run_at = case when free.goes_on then free.next_run_at end,
        planned_for = case when free.goes_on then free.planned_for end,
        last_run_at = free.decided_until,
        run_count = least(task.run_count + (free.job is not null)::int, 2000000000),
        timezone = free.timezone,
        pickup_deadline = free.pickup_deadline,
        marked_by = null,
        marked_at = null,
        taken_over = false
    from free
    where task.name = any (submit_free.names) and task.name = free.name
    returning task.name, free.job is not null;
end
$$;
