-- Mark up to %(batch)s due periodic tasks for this beat, those due longest first.
--
-- While there is a backlog (more rows are due than a batch takes), %(fresh)s of them are those due last. So a row that
-- has only just come due, or is only a little late, need not wait until the backlog is gone.
--
-- Rows that another beat is marking at this moment are skipped, not waited for. A row that it has marked just now,
-- after this statement took its snapshot, is not marked again: to lock it, Postgres checks the conditions on its new
-- version. `is_marked` (definitions/marks.sql) tells whether a mark counts. `no key update`: a plain `for update` hides
-- a row while another transaction inserts one that refers to it. The commit does not wait for the disk: where a crash
-- of Postgres loses a mark, the submit of the beat that made it finds no mark and writes nothing, and the next beat
-- decides the same. `created_at` is what the ids of the row's jobs begin with. It changes when a person has occurrences
-- decided anew, so their jobs get other ids.
--
-- A task for people has no task that is sent: an empty text.
--
-- A function, because that keeps its plan: planning such a statement anew takes as long as marking ten rows. A plan
-- that was made while the table was small must serve when it has grown, so it may only use indexes. For the same reason
-- it has `= any (array(...))` and not `in (...)`: at 1,000 of 100,000 rows the planner scans the whole table for the
-- latter.
-- function
create or replace function {schema}.mark(
    beat text, lease double precision, batch int, fresh int, lazy_names text[]
) returns table (
    name text, schedule text, timezone text, anchor timestamptz, dst text, start_at timestamptz, end_at timestamptz,
    max_runs int, run_count int, jitter interval, blackout text[], blackout_action text, windows text,
    held_back timestamptz, revision bigint, planned_from timestamptz,
    task text, args text, kwargs text, queue text, priority smallint, options text, sensitive boolean,
    catchup text, catchup_window interval, catchup_limit int, max_run_time interval,
    next_run_at timestamptz, planned_for timestamptz, last_run_at timestamptz, marked_at timestamptz,
    taken_over boolean, created_at timestamptz, comes_after boolean
)
language plpgsql rows 10
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    own_lease constant interval := make_interval(secs => lease);
begin
    perform set_config('synchronous_commit', 'off', true);
    return query
    update {schema}.periodic_task as task
    set marked_by = mark.beat,
        marked_at = {schema}.now(),
        mark_lease = own_lease,
        taken_over = task.marked_by is not null
    where task.name = any (array(
        select name from {schema}.periodic_task
        where {is_on} and next_run_at <= {schema}.now()
            and not {schema}.is_marked(marked_at, coalesce(mark_lease, own_lease))
            and (not lazy or name = any (mark.lazy_names))
        order by next_run_at
        limit mark.batch - mark.fresh
        for no key update skip locked)
        || array(
        select name from {schema}.periodic_task
        where {is_on} and next_run_at <= {schema}.now()
            and not {schema}.is_marked(marked_at, coalesce(mark_lease, own_lease))
            and (not lazy or name = any (mark.lazy_names))
        order by next_run_at desc
        limit mark.fresh
        for no key update skip locked))
    returning name, schedule, timezone, coalesce(anchor, start_at, schedule_set_at) as anchor, dst, start_at, end_at,
        max_runs, run_count, jitter, blackout, blackout_action,
        case when windows_used is not null then {schema}.windows_of(windows_used)::text end as windows,
        null::timestamptz as held_back, revision, planned_from,
        case when kind = 'human' then '' else task end as task, args::text, kwargs::text, queue, priority,
        options::text, sensitive,
        catchup, catchup_window, catchup_limit, max_run_time,
        next_run_at, planned_for, last_run_at, marked_at, taken_over,
        coalesce(decided_anew_at, created_at) as created_at, after is not null and schedule is null as comes_after;
end
$$;
-- call
select name, schedule, timezone, anchor, dst, start_at, end_at, max_runs, run_count,
    {schema}.microseconds(jitter) as jitter_microseconds, blackout, blackout_action, windows, held_back, revision,
    planned_from, task, args, kwargs, queue, priority, options, sensitive, catchup,
    {schema}.microseconds(catchup_window) as catchup_window_microseconds, catchup_limit,
    {schema}.microseconds(max_run_time) as max_run_time_microseconds, next_run_at, planned_for, last_run_at, marked_at,
    taken_over, created_at, comes_after
from {schema}.mark(
    %(beat)s, %(lease)s::double precision, %(batch)s::int, %(fresh)s::int, %(lazy_names)s::text[])
