-- The audit trail: who changed what, and how a definition is put back.
--
-- Only these functions write to `change`: they have the rights of the owner, and no role may insert, change or
-- delete there. What beats write in a tick is never recorded. The trigger for updates is not even asked: its columns
-- are none of those that a tick writes, but for the zone that a first plan fills in, and its WHEN clause refuses that.

-- What a session says of itself in pgbeat.who and pgbeat.reason; NULL if it says nothing.
create or replace function {schema}.said_of_change(field text, longest int) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    given constant text := nullif(current_setting(field, true), '');
begin
    if char_length(given) > longest then
        raise exception using errcode = 'invalid_parameter_value',
            message = format('%s has %s characters, more than %s', field, char_length(given), longest);
    end if;
    perform {schema}.refuse_control(field, given) where given is not null;
    return given;
end
$$;

-- Who acts: the person that the session names in pgbeat.who, else the role that has logged in.
create or replace function {schema}.acting_person() returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$ select coalesce({schema}.said_of_change('pgbeat.who', 200), session_user::text) $$;

-- Why, as the session says in pgbeat.reason.
create or replace function {schema}.reason_of_change() returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$ select {schema}.said_of_change('pgbeat.reason', 1000) $$;

-- A duration in seconds, as records of definitions have it.
create or replace function {schema}.in_seconds(duration interval) returns numeric
language sql immutable parallel safe
as $$ select trim_scale({schema}.microseconds(duration) / 1000000.0) $$;

-- An instant in ISO 8601, in UTC.
create or replace function {schema}.in_iso(instant timestamptz) returns text
language sql immutable parallel safe
as $$ select to_char(instant at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"') $$;

-- What is recorded of a row: its definition and its pause, without its arguments.
create or replace function {schema}.as_recorded(task {schema}.periodic_task) returns jsonb
language sql stable
as $$
    select {recorded_columns of task}
$$;

-- What is recorded of the arguments of a row, `{}` where it has none; hidden if the row is sensitive.
create or replace function {schema}.arguments_as_recorded(task {schema}.periodic_task, hide boolean) returns jsonb
language sql stable
as $$
    select jsonb_build_object(
        'args', case when hide and task.args <> '[]' then '"<sensitive>"' else task.args end,
        'kwargs', case when hide and task.kwargs <> '{}' then '"<sensitive>"' else task.kwargs end,
        'options', task.options)
$$;

-- What is recorded of the arguments of a row that are not empty; hidden if the row is sensitive.
create or replace function {schema}.set_arguments(task {schema}.periodic_task) returns jsonb
language sql stable
as $$
    select case
            when task.args = '[]' then '{}'
            when task.sensitive then '{"args": "<sensitive>"}'
            else jsonb_build_object('args', task.args)
        end || case
            when task.kwargs = '{}' then '{}'
            when task.sensitive then '{"kwargs": "<sensitive>"}'
            else jsonb_build_object('kwargs', task.kwargs)
        end || case when task.options = '{}' then '{}' else jsonb_build_object('options', task.options) end
$$;

-- Record what a person or a program did to a periodic task, a group, a job or a backfill. It writes with the rights of
-- its caller: only functions that have those of the owner can call it.
create or replace function {schema}.record_act(
    action text, name text, reason text default null, job uuid default null, backfill uuid default null,
    details jsonb default null, who text default null
) returns void
language sql
as $$
    insert into {schema}.change (at, who, role, kind, name, action, revision, after, job, backfill, reason)
    select {schema}.now(),
        coalesce({schema}.said_of_change('pgbeat.who', 200), record_act.who, session_user), session_user,
        'periodic_task', record_act.name, record_act.action,
        (select task.revision from {schema}.periodic_task as task where task.name = record_act.name),
        record_act.details, record_act.job, record_act.backfill,
        coalesce(nullif(record_act.reason, ''), {schema}.reason_of_change())
$$;

-- Record new rows: one statement for all of them, because a call for each row would cost as much as the row's own
-- trigger. What code declares, its app has changed.
create or replace function {schema}.record_created() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into {schema}.change (at, who, role, kind, name, action, revision, after, arguments_after, reason)
    select {schema}.now(),
        coalesce(said.who, case when added.declared is not null then added.managed_by end, session_user),
        session_user, 'periodic_task', added.name, 'created', added.revision,
        {set_columns of added},
        nullif({schema}.set_arguments(added), '{}'),
        said.reason
    from added
    cross join (
        select {schema}.said_of_change('pgbeat.who', 200) as who, {schema}.reason_of_change() as reason
        offset 0
    ) as said;
    return null;
end
$$;

revoke execute on function {schema}.record_created() from public;

drop trigger if exists periodic_task_created on {schema}.periodic_task;
create trigger periodic_task_created
    after insert on {schema}.periodic_task
    referencing new table as added
    for each statement execute function {schema}.record_created();

-- Record removed rows, with all that is needed to make them again.
create or replace function {schema}.record_removed() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into {schema}.change (at, who, role, kind, name, action, revision, before, arguments_before, reason)
    select {schema}.now(), {schema}.acting_person(), session_user, 'periodic_task', gone.name, 'removed', gone.revision,
        jsonb_strip_nulls({schema}.as_recorded(gone)),
        nullif({schema}.set_arguments(gone), '{}'),
        {schema}.reason_of_change()
    from deleted as gone;
    return null;
end
$$;

revoke execute on function {schema}.record_removed() from public;

drop trigger if exists periodic_task_recorded_gone on {schema}.periodic_task;
create trigger periodic_task_recorded_gone
    after delete on {schema}.periodic_task
    referencing old table as deleted
    for each statement execute function {schema}.record_removed();

-- Record of a changed row what differs. Not by statement, as above: a table of all rows that a statement has changed
-- would be made in each tick too.
create or replace function {schema}.record_changed() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Plain expressions, which need no query, and make an object only of what differs: the quickest way.
    changed constant text[] := array_remove(array[
        {changed}], null);
    before constant jsonb := {changed_columns of old};
    after constant jsonb := {changed_columns of new};
    arguments_before jsonb;
    arguments_after jsonb;
    action text := 'changed';
    reason text := nullif(current_setting('pgbeat.reason', true), '');
    who text := nullif(current_setting('pgbeat.who', true), '');
begin
    if changed && array['args', 'kwargs', 'options'] then
        arguments_before := {schema}.arguments_as_recorded(old, old.sensitive or new.sensitive)
            - array(select * from unnest(array['args', 'kwargs', 'options']) as name where name <> all (changed));
        arguments_after := {schema}.arguments_as_recorded(new, old.sensitive or new.sensitive)
            - array(select * from unnest(array['args', 'kwargs', 'options']) as name where name <> all (changed));
    elsif changed = '{}' then
        return null;  -- only a named window was changed, which has an entry of its own
    end if;
    if who is not null or reason is not null then
        who := {schema}.said_of_change('pgbeat.who', 200);
        reason := {schema}.reason_of_change();
    end if;

    if new.name <> old.name then
        action := 'renamed';
    elsif new.revision = old.revision and arguments_before is null
        and before - array['enabled', 'pause_reason', 'paused_by', 'paused_until'] = '{}'
    then
        action := case when not new.enabled then 'paused' when not old.enabled then 'resumed' else 'changed' end;
        reason := coalesce(nullif(new.pause_reason, ''), reason, case
            when new.enabled and old.paused_until <= {schema}.now() then 'its pause was over'
        end);
        who := coalesce(who, case when not new.enabled then new.paused_by end);
    end if;
    insert into {schema}.change (
        at, who, role, kind, name, action, revision, columns, before, after, arguments_before, arguments_after, reason)
    values (
        {schema}.now(),
        coalesce(who, case when new.declared is distinct from old.declared then new.managed_by end, session_user),
        session_user, 'periodic_task', new.name, action, new.revision,
        changed, nullif(before, '{}'), nullif(after, '{}'), arguments_before, arguments_after, reason);
    return null;
end
$$;

revoke execute on function {schema}.record_changed() from public;

drop trigger if exists periodic_task_recorded on {schema}.periodic_task;
create trigger periodic_task_recorded
    after update of
        {recorded}
    on {schema}.periodic_task
    for each row
    when (old.revision <> new.revision
          or ({old.recorded_without_effect})
             is distinct from
             ({new.recorded_without_effect}))
    execute function {schema}.record_changed();

-- Record a next_run_at that no beat has written: by it a row may run at any time, or never again. When a beat writes
-- it, the row has an occurrence (planned_for), or last_run_at goes up, or it is planned now with no further run.
-- The condition begins with what is false in most ticks.
create or replace function {schema}.record_next_run() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into {schema}.change (at, who, role, kind, name, action, revision, columns, before, after, reason)
    values (
        {schema}.now(), {schema}.acting_person(), session_user, 'periodic_task', new.name, 'next_run_set',
        new.revision, array['next_run_at'], jsonb_build_object('next_run_at', {schema}.in_iso(old.next_run_at)),
        jsonb_build_object('next_run_at', {schema}.in_iso(new.next_run_at)), {schema}.reason_of_change());
    return null;
end
$$;

revoke execute on function {schema}.record_next_run() from public;

drop trigger if exists periodic_task_next_run_recorded on {schema}.periodic_task;
create trigger periodic_task_next_run_recorded
    after update of next_run_at on {schema}.periodic_task
    for each row
    when (new.planned_for is null and old.next_run_at is distinct from new.next_run_at
          and (new.last_run_at > old.last_run_at or old.last_run_at is null and new.last_run_at is not null) is not true
          and not (new.next_run_at is null
              and old.planned_revision <> new.revision and new.planned_revision = new.revision)
          and old.revision = new.revision and old.enabled = new.enabled and old.group_paused = new.group_paused)
    execute function {schema}.record_next_run();

-- The definition of a group as it is recorded. Beats move a group between active and waiting, which is no change.
create or replace function {schema}.group_as_recorded(known {schema}.task_group) returns jsonb
language sql immutable
as $$
    select jsonb_build_object(
        'name', known.name, 'max_active', known.max_active, 'ordered', known.ordered,
        'waits_for', known.waits_for, 'pause_on_failure', known.pause_on_failure, 'rate_limit', known.rate_limit,
        'state', case when known.state = 'waiting' then 'active' else known.state end,
        'pause_reason', known.pause_reason)
$$;

-- The definition of a named window as it is recorded.
create or replace function {schema}.window_as_recorded(known {schema}.blackout) returns jsonb
language sql immutable
as $$ select jsonb_build_object('name', known.name, 'windows', known.windows, 'timezone', known.timezone) $$;

-- Record a group or a named window that was written to, if it differs.
create or replace function {schema}.record_shared(kind text, former jsonb, present jsonb) returns void
language plpgsql
as $$
declare
    old_state constant text := former ->> 'state';
    new_state constant text := present ->> 'state';
    differs record;
begin
    select jsonb_object_agg(key, one.value) as before, jsonb_object_agg(key, other.value) as after into differs
    from jsonb_each(former) as one
    join jsonb_each(present) as other using (key)
    where one.value <> other.value;
    if former is not null and present is not null and differs.before is null then
        return;
    end if;
    insert into {schema}.change (at, who, role, kind, name, action, columns, before, after, reason)
    values (
        {schema}.now(), {schema}.acting_person(), session_user, kind, coalesce(present, former) ->> 'name',
        case
            when present is null then 'removed'
            when former ->> 'name' <> present ->> 'name' then 'renamed'
            when kind = 'group' and new_state is distinct from coalesce(old_state, 'active') then
                case new_state when 'paused' then 'paused' when 'finished' then 'finished' else 'resumed' end
            when former is null then 'created'
            else 'changed'
        end,
        case when differs.after is not null then array(select jsonb_object_keys(differs.after) order by 1) end,
        case when present is null then jsonb_strip_nulls(former) else differs.before end,
        case when former is null then jsonb_strip_nulls(present) else differs.after end,
        coalesce(case when new_state = 'paused' then present ->> 'pause_reason' end, {schema}.reason_of_change()));
end
$$;

-- Record a group that was written to.
create or replace function {schema}.record_group() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform {schema}.record_shared(
        'group',
        case when tg_op <> 'INSERT' then {schema}.group_as_recorded(old) end,
        case when tg_op <> 'DELETE' then {schema}.group_as_recorded(new) end);
    return null;
end
$$;

-- Record a named window that was written to.
create or replace function {schema}.record_window() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform {schema}.record_shared(
        'window',
        case when tg_op <> 'INSERT' then {schema}.window_as_recorded(old) end,
        case when tg_op <> 'DELETE' then {schema}.window_as_recorded(new) end);
    return null;
end
$$;

revoke execute on function {schema}.record_group() from public;
revoke execute on function {schema}.record_window() from public;

drop trigger if exists task_group_recorded on {schema}.task_group;
create trigger task_group_recorded
    after insert or delete
        or update of name, max_active, paused, pause_reason, ordered, state, waits_for, pause_on_failure, rate_limit
    on {schema}.task_group
    for each row execute function {schema}.record_group();

drop trigger if exists blackout_recorded on {schema}.blackout;
create trigger blackout_recorded
    after insert or update or delete on {schema}.blackout
    for each row execute function {schema}.record_window();
