-- The roles of the schema, each with the fewest rights that it needs. Run it again after each migration: it replaces
-- all grants, in one transaction. It needs a superuser, or a user who may create roles and owns the schema. Roles
-- belong to the whole server: two databases with a schema of the same name share them.
--
--   {owner}   owns the schema; migrations run as it: set role {owner}
--   {beat}    celery beat, with pgbeat_auto_migrate = False
--   {worker}  the workers
--   {author}  people and services that define periodic tasks: they may run any task with any arguments
--   {reader}  dashboards: everything but arguments, options, messages and the tokens of starts
--   {person}  people and their applications: pick up and finish tasks for people, and nothing else
--
-- None of them can log in: make users of your own and members of one role. Give these an empty search path, which is
-- enough for us: then no other user's function can replace one of Postgres' in their sessions.
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
    if to_regclass(format('%I.schema_version', {channel})) is null then
        raise exception 'the schema % is not there yet', {channel}
            using hint = 'Run celery-pgbeat migrate first; the roles are granted what it has made.';
    end if;
    foreach wanted in array {names} loop
        if not exists (select from pg_roles where rolname = wanted) then
            begin
                execute format('create role %I nologin', wanted);
            exception when duplicate_object or unique_violation then
                null;  -- another session has just made it
            end;
        end if;
    end loop;
    -- A user who is not a superuser can give objects only to a role of which it is a member.
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
        select format('%s %s', case relkind when 'v' then 'view' when 'c' then 'type' else 'table' end, oid::regclass)
        from pg_class
        where relnamespace = {channel}::regnamespace and relkind in ('r', 'p', 'v', 'c')
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

revoke all on schema {schema} from public, {beat}, {worker}, {author}, {reader}, {person};
revoke all on all tables in schema {schema} from public, {beat}, {worker}, {author}, {reader}, {person};
revoke all on all functions in schema {schema} from public, {beat}, {worker}, {author}, {reader}, {person};

grant usage on schema {schema} to {beat}, {worker}, {author}, {reader}, {person};
grant select on {schema}.schema_version to {beat}, {worker}, {author}, {reader}, {person};

-- The beat: plans, submits, recovers; writes what code declares. It never deletes a periodic task, and it deletes
-- history only through prune().
grant select, insert, update on {schema}.periodic_task to {beat};
grant select, insert, update, delete on {schema}.active_job to {beat};
grant select, insert on {schema}.finished_job to {beat};
grant select, insert, update, delete on {schema}.node, {schema}.stopped_beat to {beat};
grant select, insert, update on {schema}.periodic_task_state to {beat};
grant select on {schema}.blackout, {schema}.overdue to {beat};
grant select on {schema}.task_group to {beat};
grant update (state, paused, pause_reason, next_turn_at, last_served) on {schema}.task_group to {beat};
grant select, insert, update, delete on {schema}.group_failure to {beat};
grant select, insert, delete on {schema}.group_to_check to {beat};
grant update (seen) on {schema}.group_to_check to {beat};  -- a lock on a row needs the right to change a column
grant select on {schema}.dependency to {beat};
grant select, insert, delete on {schema}.dependency_to_check to {beat};
grant update (upstream) on {schema}.dependency_to_check to {beat};  -- likewise
grant select, insert, update, delete on {schema}.declaration to {beat};
grant select, insert, update on {schema}.declaration_in_force to {beat};
grant select, insert, update, delete on {schema}.alert, {schema}.refused_declaration, {schema}.app to {beat};
grant select, update on {schema}.backfill to {beat};
grant select (job, is_new), update (is_new) on {schema}.open_work to {beat};
grant select, insert, update, delete on {schema}.lost_message to {beat};

-- The worker: reports its jobs. It changes the columns of a periodic task that a job may change (snooze, reschedule,
-- cancel), never the task that is called.
grant select (
        name, task, schedule, timezone, anchor, dst, start_at, overlap, after, enabled, paused_until,
        pause_after_failures, failures_from, created_at)
    on {schema}.periodic_task to {worker};
grant update (schedule, timezone, anchor, enabled, pause_reason, paused_by, paused_until)
    on {schema}.periodic_task to {worker};
grant select, insert, update on {schema}.periodic_task_state to {worker};
grant select on {schema}.task_group, {schema}.dependency, {schema}.app to {worker};
grant insert on {schema}.group_failure to {worker};
grant insert (group_name) on {schema}.group_to_check to {worker};
grant insert (upstream, downstream) on {schema}.dependency_to_check to {worker};
grant select, insert, delete on {schema}.active_job to {worker};
grant update (state, exclusive, slot, wait_reason, waited, run, attempt, attempt_at, started_at, busy_until, check_at,
        token, worker, error, marked_by, marked_at, due_by)
    on {schema}.active_job to {worker};
grant select, insert, delete on {schema}.finished_job to {worker};
grant update (state, error) on {schema}.finished_job to {worker};
grant select, insert, delete on {schema}.node to {worker};
grant update (last_seen_at, broker_problem, broker_problem_since) on {schema}.node to {worker};

-- The author: writes the definition of periodic tasks, pauses them, sets their next run; writes named windows. An
-- author writes neither the columns of beats and workers nor jobs: trigger() starts one job, trigger_many() many,
-- backfill() those of a range. A column's line in celery_pgbeat/columns.py decides whether author and reader have it.
grant select on {schema}.periodic_task, {schema}.periodic_task_state, {schema}.active_job, {schema}.finished_job,
    {schema}.node, {schema}.stopped_beat, {schema}.blackout, {schema}.task_group, {schema}.group_failure,
    {schema}.dependency, {schema}.declaration,
    {schema}.declaration_in_force, {schema}.alert, {schema}.refused_declaration, {schema}.app, {schema}.backfill,
    {schema}.open_work, {schema}.lost_message, {schema}.change, {schema}.job, {schema}.upcoming, {schema}.task,
    {schema}.status, {schema}.overdue to {author};
grant insert ({insert_by_author}),
    update ({update_by_author}),
    delete
    on {schema}.periodic_task to {author};
grant insert, update, delete on {schema}.blackout to {author};
grant insert ({group}), update ({group}), delete on {schema}.task_group to {author};
grant update (retried), delete on {schema}.group_failure to {author};
grant insert (group_name) on {schema}.group_to_check to {author};
grant insert (upstream, downstream) on {schema}.dependency_to_check to {author};

-- The reader: reads the state of everything. Arguments, options and messages may hold private data, so they are left
-- out. So is the token of a job's start.
grant select ({select_by_reader})
    on {schema}.periodic_task to {reader};
grant select ({active_job_by_reader}) on {schema}.active_job to {reader};
grant select ({finished_job_by_reader}) on {schema}.finished_job to {reader};
grant select (id, at, who, role, kind, name, action, revision, columns, before, after, job, backfill, reason)
    on {schema}.change to {reader};
grant select on {schema}.periodic_task_state, {schema}.node, {schema}.stopped_beat, {schema}.blackout,
    {schema}.task_group, {schema}.group_failure, {schema}.dependency, {schema}.declaration,
    {schema}.declaration_in_force, {schema}.alert,
    {schema}.refused_declaration, {schema}.app, {schema}.backfill, {schema}.open_work, {schema}.lost_message
    to {reader};
grant select on {schema}.job, {schema}.upcoming, {schema}.task, {schema}.status, {schema}.overdue to {reader};
-- `doctor` asks whether a row has missed its day.
grant select (id) on {schema}.finished_job_default to {author}, {reader};

-- A function has the rights of its caller, so all may call it; those that have the rights of the owner follow below.
do $$
declare
    routine regprocedure;
begin
    for routine in
        select oid from pg_proc where pronamespace = {channel}::regnamespace and not prosecdef
    loop
        execute format('grant execute on function %s to {beat}, {worker}, {author}, {reader}, {person}', routine);
    end loop;
end
$$;

grant execute on function {schema}.make_days(int), {schema}.prune(interval), {schema}.prune_changes(interval, int),
    {schema}.try_lock(text) to {beat};
grant execute on function {schema}.is_backfilled(text[]) to {beat}, {worker};
grant execute on function {schema}.trigger(text, boolean, jsonb, jsonb), {schema}.trigger_many(jsonb, boolean),
    {schema}.backfill(text, timestamptz, timestamptz, text, int), {schema}.backfill(text, date, date, text, int),
    {schema}.backfill(text, text, text, text, int), {schema}.cancel_backfill(uuid), {schema}.run_again(uuid),
    {schema}.fail_job(uuid, text), {schema}.cancel_unstarted(uuid, text), {schema}.resend_job(uuid),
    {schema}.retry_failures_of(text), {schema}.start_manual_job(text, boolean, jsonb, jsonb, uuid),
    {schema}.replan(text[], text) to {author};
-- The person: takes, gives back, ends and cancels tasks for people. It reads no table but schema_version, and writes
-- none.
grant execute on function {schema}.my_work(text, text[], int), {schema}.pick_up(uuid, text, text[]),
    {schema}.release(uuid, text), {schema}.finish(uuid, text, text, text), {schema}.cancel_work(uuid, text)
    to {person}, {author};
grant execute on function {schema}.explain(text) to {author}, {reader};

commit;
