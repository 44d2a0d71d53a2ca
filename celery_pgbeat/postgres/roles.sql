-- The roles of the schema, with the least that each needs. Run it again after each migration: it says anew, in one
-- transaction, who may do what, whatever was granted before. It needs a superuser, or who may create roles and owns the
-- schema. Roles belong to the whole server: two databases with a schema of the same name share them.
--
--   {owner}   owns the schema; migrations run as it: set role {owner}
--   {beat}    celery beat, with pgbeat_auto_migrate = False
--   {worker}  the workers
--   {author}  people and services that define periodic tasks: they may run any task with any arguments
--   {reader}  dashboards: everything but arguments, options and messages
--
-- None of them can log in. Make users of your own, members of one. Without a search path nobody can put a function of
-- his own in the place of one of Postgres' for them; we need none.
--
--   create role alice login password '...' in role {author};
--   alter role alice set search_path = '';

begin;

set local lock_timeout = '5s';
set local search_path = pg_catalog, pg_temp;

do $$
declare
    wanted text;
begin
    foreach wanted in array {names} loop
        if not exists (select from pg_roles where rolname = wanted) then
            begin
                execute format('create role %I nologin', wanted);
            exception when duplicate_object or unique_violation then
                null;  -- somebody else has just made it
            end;
        end if;
    end loop;
    -- Who is no superuser gives things away only to a role of which he is a member.
    if not (select rolsuper from pg_roles where rolname = current_user) and not pg_has_role(({names})[1], 'usage') then
        execute format('grant %I to current_user', ({names})[1]);
    end if;
end
$$;

do $$
declare
    thing text;
begin
    for thing in
        select format('schema %I', nspname)
        from pg_namespace
        where oid = {channel}::regnamespace and nspowner <> ({names})[1]::regrole
        union all
        select format('%s %s', case relkind when 'v' then 'view' else 'table' end, oid::regclass)
        from pg_class
        where relnamespace = {channel}::regnamespace and relkind in ('r', 'p', 'v')
            and relowner <> ({names})[1]::regrole
        union all
        select format('function %s', oid::regprocedure)
        from pg_proc
        where pronamespace = {channel}::regnamespace and proowner <> ({names})[1]::regrole
    loop
        execute format('alter %s owner to %I', thing, ({names})[1]);
    end loop;
end
$$;

revoke all on schema {schema} from public, {beat}, {worker}, {author}, {reader};
revoke all on all tables in schema {schema} from public, {beat}, {worker}, {author}, {reader};
revoke all on all functions in schema {schema} from public, {beat}, {worker}, {author}, {reader};

grant usage on schema {schema} to {beat}, {worker}, {author}, {reader};
grant select on {schema}.schema_version to {beat}, {worker}, {author}, {reader};

-- The beat: plans, submits, recovers; writes what code declares. It never deletes a periodic task, and no history but
-- through prune().
grant select, insert, update on {schema}.periodic_task to {beat};
grant select, insert, update, delete on {schema}.active_job to {beat};
grant select, insert on {schema}.finished_job to {beat};
grant select, insert, update, delete on {schema}.node to {beat};
grant select, insert, update on {schema}.periodic_task_state to {beat};
grant select on {schema}.blackout, {schema}.overdue to {beat};
grant select on {schema}.task_group to {beat};
-- To lock a row, which asks for the right to change something.
grant update (pause_reason) on {schema}.task_group to {beat};
grant select, insert, update, delete on {schema}.declaration to {beat};
grant select, insert, update on {schema}.declaration_in_force to {beat};
grant select, insert, update, delete on {schema}.alert to {beat};
grant select, update on {schema}.backfill to {beat};

-- The worker: reports its jobs. Of a periodic task it changes what a job may change of its own (snooze, reschedule,
-- cancel), never what is called.
grant select (
        name, task, timezone, anchor, dst, start_at, overlap, enabled, paused_until, pause_after_failures,
        failures_from,
        created_at)
    on {schema}.periodic_task to {worker};
grant update (schedule, timezone, anchor, enabled, pause_reason, paused_by, paused_until)
    on {schema}.periodic_task to {worker};
grant select, insert, update on {schema}.periodic_task_state to {worker};
grant select on {schema}.task_group to {worker};
grant select, insert, delete on {schema}.active_job to {worker};
grant update (state, exclusive, slot, waits_for, waited, attempt, attempt_at, started_at, busy_until, check_at, token,
        worker, error,
        marked_by, marked_at)
    on {schema}.active_job to {worker};
grant select, insert, delete on {schema}.finished_job to {worker};
grant update (state, error) on {schema}.finished_job to {worker};
grant select, insert, delete on {schema}.node to {worker};
grant update (last_seen_at) on {schema}.node to {worker};

-- The author: the definition of periodic tasks, pausing them, and their next run; named windows. What beats and
-- workers write is not the author's, nor are the jobs: trigger() starts one, backfill() those of a range.
grant select on {schema}.periodic_task, {schema}.periodic_task_state, {schema}.active_job, {schema}.finished_job,
    {schema}.node, {schema}.blackout, {schema}.task_group, {schema}.declaration, {schema}.declaration_in_force,
    {schema}.alert, {schema}.backfill, {schema}.job, {schema}.upcoming, {schema}.status, {schema}.overdue to {author};
grant insert (
        name, task, args, kwargs, queue, priority, options, sensitive,
        schedule, timezone, anchor, dst, start_at, end_at, max_runs,
        jitter, overlap, catchup, catchup_window, catchup_limit, min_gap, max_run_time, blackout, blackout_action,
        group_name, submitter, subject, pause_after_failures, enabled, pause_reason, paused_by, paused_until, on_lost,
        tracking, next_run_at, managed_by),
    update (
        name, task, args, kwargs, queue, priority, options, sensitive,
        schedule, timezone, anchor, dst, start_at, end_at, max_runs,
        jitter, overlap, catchup, catchup_window, catchup_limit, min_gap, max_run_time, blackout, blackout_action,
        group_name, submitter, subject, pause_after_failures, enabled, pause_reason, paused_by, paused_until, on_lost,
        tracking, next_run_at, managed_by, declared_timezone, windows_revision, group_paused),
    delete
    on {schema}.periodic_task to {author};
grant insert, update, delete on {schema}.blackout, {schema}.task_group to {author};

-- The reader: how things stand. Arguments, options and messages may hold what is nobody else's business.
grant select (
        name, task, queue, priority, sensitive, schedule, timezone, anchor, dst, start_at, end_at, max_runs, run_count,
        jitter,
        overlap, catchup, catchup_window, catchup_limit, min_gap, max_run_time, blackout, blackout_action, group_name,
        group_paused, submitter, subject, enabled, pause_reason, paused_by, paused_until, on_lost, tracking,
        next_run_at, planned_for, last_run_at, marked_by,
        marked_at, mark_lease, managed_by, problem, revision, planned_revision, created_at, updated_at, schedule_set_at,
        planned_from, judged_from, taken_over, pickup_deadline, lazy, declared_timezone, windows_used, windows_revision,
        pause_after_failures, failures_from, decided_anew_at)
    on {schema}.periodic_task to {reader};
grant select (
        id, periodic_task, scheduled_for, due_at, origin, state, exclusive, group_name, slot, waits_for, waited,
        stop_request, task, queue, on_lost, tracking,
        min_gap, max_run_time, pickup_deadline, created_at, sent_at, started_at, attempt_at, busy_until, check_at, run,
        attempt, sends, resends, refusals, marked_by, marked_at, mark_lease, beat, worker, error, pause_after_failures,
        backfill)
    on {schema}.active_job to {reader};
grant select (
        id, periodic_task, scheduled_for, last_scheduled_for, occurrences, origin, state, reason, blocked_by, task,
        queue,
        created_at, sent_at, started_at, finished_at, run, attempt, sends, beat, worker, error, busy_until)
    on {schema}.finished_job to {reader};
grant select on {schema}.periodic_task_state, {schema}.node, {schema}.blackout, {schema}.task_group,
    {schema}.declaration,
    {schema}.declaration_in_force, {schema}.alert, {schema}.backfill to {reader};
grant select on {schema}.job, {schema}.upcoming, {schema}.status, {schema}.overdue to {reader};

-- A function does what its caller may do, so calling one gives nobody anything; those that act for the owner do.
do $$
declare
    routine regprocedure;
begin
    for routine in
        select oid from pg_proc where pronamespace = {channel}::regnamespace and not prosecdef
    loop
        execute format('grant execute on function %s to {beat}, {worker}, {author}, {reader}', routine);
    end loop;
end
$$;

grant execute on function {schema}.make_days(int), {schema}.prune(interval) to {beat};
grant execute on function {schema}.is_backfilled(text[]) to {beat}, {worker};
grant execute on function {schema}.trigger(text, boolean),
    {schema}.backfill(text, timestamptz, timestamptz, text, int), {schema}.cancel_backfill(uuid) to {author};
grant execute on function {schema}.explain(text) to {author}, {reader};

commit;
