-- Mark up to %(batch)s due periodic tasks for this beat, those due longest first.
--
-- While there is a backlog (more rows are due than a batch takes), %(fresh)s of them are those due last. So a row that
-- has only just come due, or is only a little late, need not wait until the backlog is gone.
--
-- Rows that another beat is marking at this moment are skipped, not waited for. A row that it has marked just now,
-- after this statement took its snapshot, is not marked again: to lock it, Postgres checks the conditions on its new
-- version. `is_marked` (internal/marks.sql) tells whether a mark counts. `no key update`: a plain `for update` hides
-- a row while another transaction inserts one that refers to it. `created_at` is what the ids of the row's jobs are
-- made from. It changes when a person has occurrences decided anew, so their jobs get other ids.
--
-- Rows whose queue is closed (beat/send/closed_queues.py) stay as they are: those of these queues, and of those without
-- a queue of their own those of these tasks.
--
-- **At once** (`mark_or_submit`). Most decisions are the same one: the occurrence is on time and is sent, and the next
-- one is the next run. So the beat that decided last (planning/ahead.py) has left in the row the next runs: their
-- occurrences (`planned_ahead`), and when these are due (`due_ahead`; NULL if each is at its own instant). The place of
-- `planned_for` in them is that of the next run, so that a tick need not write them. Where nothing is in the way, this
-- statement does what a decision and its submit would do: the new job has the mark, and the row has its next run and no
-- mark. All other rows are marked, and `job` is NULL. A row is submitted at once only if
--   - no beat has marked it, not even one that died: an occurrence may be later after that and still be on time;
--   - this run is planned ahead, for this instant, and the one after it: the row trigger takes away what is planned
--     with every change that could make it wrong, and `replan` makes the row unplanned;
--   - the occurrence is on time, by `on_time` and `catchup_window`, and later than the last one decided; of a row with
--     windows by no more than a minute, within which no window opens (`FREE_FOR`);
--   - nothing stands in the way for which `submit` has rules: a job of the row, its group, other tasks that must have
--     ended, a pause that is due.
--
-- What is locked is found again by its place (`ctid`), which is cheaper than by name. No row moves while it is locked.
--
-- The commit of a mark does not wait for the disk: where a crash of Postgres loses a mark, the submit of the beat that
-- made it finds no mark and writes nothing, and the next beat decides the same. With a job it does wait.
--
-- A task for people has no task that is sent: an empty text.
--
-- A function, because that keeps its plan: planning such a statement anew takes as long as marking ten rows. A plan
-- that was made while the table was small must serve when it has grown, so it may only use indexes. For the same reason
-- it has `= any (array(...))` and not `in (...)`: at 1,000 of 100,000 rows the planner scans the whole table for the
-- latter. An `exists` with `offset 0` looks up each row by itself.
-- function
create or replace function {schema}.mark(
    beat text, lease double precision, batch int, fresh int, lazy_names text[], closed_queues text[],
    closed_tasks text[], at_once boolean default false, on_time double precision default 0,
    pickup_deadline double precision default null, full_acts_as text default 'full'
) returns table (
    name text, schedule text, timezone text, anchor timestamptz, dst text, start_at timestamptz, end_at timestamptz,
    max_runs int, run_count int, jitter interval, blackout text[], blackout_action text, windows text,
    held_back timestamptz, revision bigint, planned_from timestamptz,
    task text, args text, kwargs text, queue text, priority smallint, options text, sensitive boolean,
    catchup text, catchup_window interval, catchup_limit int, max_run_time interval,
    next_run_at timestamptz, planned_for timestamptz, last_run_at timestamptz, marked_at timestamptz,
    taken_over boolean, created_at timestamptz, comes_after boolean, tracking text, job uuid
)
language plpgsql rows 10
set search_path = pg_catalog, pg_temp
{keeps_one_plan}
as $$
#variable_conflict use_column
declare
    own_lease constant interval := make_interval(secs => lease);
    longest_pickup constant interval := make_interval(secs => pickup_deadline);
    due tid[];
    submitted bigint := 0;
begin
    due := array(
        select ctid from {schema}.periodic_task
        where {is_on} and next_run_at <= {schema}.now()
            and not {schema}.is_marked(marked_at, coalesce(mark_lease, own_lease))
            and (not lazy or name = any (mark.lazy_names))
            and (case when queue is null then coalesce(task, '') <> all (mark.closed_tasks)
                else queue <> all (mark.closed_queues) end or options ?| array['queue', 'exchange', 'routing_key'])
        order by next_run_at
        limit mark.batch - mark.fresh
        for no key update skip locked)
        || array(
        select ctid from {schema}.periodic_task
        where {is_on} and next_run_at <= {schema}.now()
            and not {schema}.is_marked(marked_at, coalesce(mark_lease, own_lease))
            and (not lazy or name = any (mark.lazy_names))
            and (case when queue is null then coalesce(task, '') <> all (mark.closed_tasks)
                else queue <> all (mark.closed_queues) end or options ?| array['queue', 'exchange', 'routing_key'])
        order by next_run_at desc
        limit mark.fresh
        for no key update skip locked);

    if mark.at_once then
        return query
        with made as (
            insert into {schema}.active_job
            select created.* from {schema}.periodic_task as stored
            cross join lateral (
                select array_position(stored.planned_ahead, stored.planned_for) as present offset 0
            ) as place
            cross join lateral {schema}.new_job(
                stored,
                {schema}.job_id(
                    stored.name, coalesce(stored.decided_anew_at, stored.created_at), stored.planned_for),
                stored.planned_for, stored.next_run_at, 'schedule', stored.overlap <> 'allow', null,
                {schema}.pickup_within(stored.planned_for, stored.planned_ahead[present + 1], longest_pickup),
                stored.timezone, mark.full_acts_as, mark.beat, {schema}.now(), own_lease) as created
            where stored.ctid = any (due)
                and stored.marked_by is null
                and (coalesce(stored.due_ahead, stored.planned_ahead))[present] = stored.next_run_at
                and stored.planned_ahead[present + 1] is not null
                and stored.planned_revision = stored.revision
                and stored.planned_for > coalesce(stored.last_run_at, '-infinity')
                and stored.next_run_at >= {schema}.now() - make_interval(secs => mark.on_time)
                and (stored.blackout is null or stored.next_run_at >= {schema}.now() - interval '1 minute')
                and (stored.catchup_window is null or stored.next_run_at + stored.catchup_window >= {schema}.now())
                and stored.after is null
                and (stored.pause_after_failures is null or not {schema}.pause_is_due(
                    stored.name, stored.failures_from, stored.pause_after_failures))
                and (stored.overlap = 'allow' or not exists (
                    select from {schema}.active_job as other where other.periodic_task = stored.name
                    offset 0))
                and (stored.group_name is null or not exists (
                    select from {schema}.task_group
                    where name = stored.group_name and (limited or state = 'finished')
                    offset 0))
            on conflict do nothing
            returning id, periodic_task, due_at, pickup_deadline
        )
        update {schema}.periodic_task as task
        set next_run_at = case when (task.run_count + 1 < task.max_runs) is not false then
                (coalesce(task.due_ahead, task.planned_ahead))[array_position(task.planned_ahead, task.planned_for) + 1]
            end,
            planned_for = case when (task.run_count + 1 < task.max_runs) is not false then
                task.planned_ahead[array_position(task.planned_ahead, task.planned_for) + 1]
            end,
            last_run_at = task.planned_for,
            run_count = least(task.run_count + 1, 2000000000),
            pickup_deadline = made.pickup_deadline
        from made
        where task.ctid = any (due) and task.name = made.periodic_task
        returning name, schedule, timezone, null::timestamptz, null, null::timestamptz, null::timestamptz,
            null::int, null::int, null::interval, null::text[], null, null,
            null::timestamptz, null::bigint, null::timestamptz,
            task, args::text, kwargs::text, queue, priority, options::text, sensitive,
            null, catchup_window, null::int, max_run_time,
            made.due_at::timestamptz, last_run_at, null::timestamptz, {schema}.now(),
            false, null::timestamptz, false, case when tracking = 'full' then mark.full_acts_as else tracking end,
            made.id;
        get diagnostics submitted = row_count;
    end if;

    if submitted = 0 then
        perform set_config('synchronous_commit', 'off', true);
    end if;

    -- The rows that are submitted have other places now, where this does not look.
    if submitted < cardinality(due) then
        return query
        update {schema}.periodic_task as task
        set marked_by = mark.beat,
            marked_at = {schema}.now(),
            mark_lease = own_lease,
            taken_over = task.marked_by is not null
        where task.ctid = any (due)
        returning name, schedule, timezone, coalesce(anchor, start_at, schedule_set_at) as anchor, dst, start_at,
            end_at, max_runs, run_count, jitter, blackout, blackout_action,
            case when windows_used is not null then {schema}.windows_of(windows_used)::text end as windows,
            null::timestamptz as held_back, revision, planned_from,
            case when kind = 'human' then '' else task end as task, args::text, kwargs::text, queue, priority,
            options::text, sensitive,
            catchup, catchup_window, catchup_limit, max_run_time,
            next_run_at, planned_for, last_run_at, marked_at, taken_over,
            coalesce(decided_anew_at, created_at) as created_at, after is not null and schedule is null as comes_after,
            tracking, null::uuid as job;
    end if;
end
$$;
-- call
select {marked_columns}
from {schema}.mark(
    %(beat)s, %(lease)s::double precision, %(batch)s::int, %(fresh)s::int, %(lazy_names)s::text[],
    %(closed_queues)s::text[], %(closed_tasks)s::text[])
