-- Look, without a lock or a write, whether there is anything to do, and when the next row will be due.
--
-- The one statement of an idle beat: poll, recover and judge share it. Each branch is one probe of an index. Rows with
-- a valid mark do not count, or every beat would look again and again because of them. Jobs are looked at when their
-- `check_at` has passed: what is late then is `unsent` or `past_deadline`, the rest is `in_time`. There are
-- `slots_to_grant` when something has changed in a group in which a job waits, or it may have its turn by now.
-- `next_run_at` is also when a rate limit allows the next job. `downstream` tells whether a task has ended, or been
-- changed, and others come after it. Rows whose queue is closed are not `due`: see mark.sql.
--
-- A function, because that keeps its plan: planning such a statement anew took ten times as long as the look itself. A
-- plan that was made while the tables were small must serve when they have grown, so it may only use indexes.
-- function
create or replace function {schema}.look(
    lease double precision, lazy_names text[], closed_queues text[], closed_tasks text[]
) returns table (
    now timestamptz,
    due boolean,
    next_run_at timestamptz,
    unplanned boolean,
    unsent boolean,
    slots_to_grant boolean,
    unreported boolean,
    past_deadline boolean,
    in_time boolean,
    resumes boolean,
    failing boolean,
    backfills boolean,
    downstream boolean
)
language plpgsql stable rows 1
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    own_lease constant interval := make_interval(secs => lease);
begin
    return query
    select
        {schema}.now() as now,
        exists (
            select from {schema}.periodic_task
            where {is_on} and next_run_at <= {schema}.now()
                and not {schema}.is_marked(marked_at, coalesce(mark_lease, own_lease))
                and (not lazy or name = any (look.lazy_names))
                and (case when queue is null then coalesce(task, '') <> all (look.closed_tasks)
                    else queue <> all (look.closed_queues) end or options ?| array['queue', 'exchange', 'routing_key'])
        ) as due,
        least((
            select next_run_at from {schema}.periodic_task
            where {is_on} and next_run_at > {schema}.now() and (not lazy or name = any (look.lazy_names))
            order by next_run_at
            limit 1
        ), {schema}.next_turn_at()) as next_run_at,
        -- Ordered, or the planner, which takes `<>` for nearly always true, reads the whole table.
        coalesce((
            select true from {schema}.periodic_task
            where {is_on} and planned_revision <> revision
            order by name
            limit 1
        ), false) as unplanned,
        coalesce((
            select true from {schema}.active_job
            where check_at <= {schema}.now() and state = 'pending'
                and not {schema}.is_marked(marked_at, coalesce(mark_lease, own_lease))
            order by check_at
            limit 1
        ), false) as unsent,
        exists (select from {schema}.group_to_check where not seen)
            or exists (select from {schema}.seen_groups_with_room()) as slots_to_grant,
        exists (select from {schema}.active_job where tracking = 'result') as unreported,
        coalesce((
            select true from {schema}.active_job
            where check_at > '-infinity' and check_at <= {schema}.now()
                and busy_until < {schema}.now() and state <> 'pending'
            order by check_at
            limit 1
        ), false) as past_deadline,
        coalesce((
            select true from {schema}.active_job
            where check_at > '-infinity' and check_at <= {schema}.now()
                and case
                    when state = 'pending' then {schema}.is_marked(marked_at, coalesce(mark_lease, own_lease))
                    else busy_until >= {schema}.now()
                end
            order by check_at
            limit 1
        ), false) as in_time,
        exists (
            select from {schema}.periodic_task
            where not enabled and paused_until is not null and paused_until <= {schema}.now()
        ) as resumes,
        -- Ordered, or the planner takes half of the states for due and reads the table.
        coalesce((
            select true from {schema}.periodic_task_state where pause_due order by name limit 1
        ), exists (select from {schema}.group_failure where pause_due)) as failing,
        exists (select from {schema}.backfills_with_room(look.lazy_names)) as backfills,
        exists (select from {schema}.dependency_to_check) as downstream;
end
$$;
-- call
select now, due, next_run_at, unplanned, unsent, slots_to_grant, unreported, past_deadline, in_time, resumes,
    failing, backfills, downstream
from {schema}.look(
    %(lease)s, %(lazy_names)s::text[], %(closed_queues)s::text[], %(closed_tasks)s::text[])
