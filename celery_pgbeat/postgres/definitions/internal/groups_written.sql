-- What a write to `task_group`, and a new member, causes; the words: internal/groups.sql.

-- The groups (or, by their column `after`, periodic tasks) by which one would wait for itself, from this one on, in
-- words; NULL if there is no such circle. It looks at each once, those that are waited for first.
create or replace function {schema}.circle_of(what text, name text, waits_for text[]) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    waits_of jsonb := '{}';  -- for each group that was reached, one that waits for it
    reached text[] := waits_for;
    step text := circle_of.name;
    path text;
begin
    select coalesce(jsonb_object_agg(other, circle_of.name), '{}') into waits_of from unnest(reached) as other;
    while cardinality(reached) > 0 and not waits_of ? circle_of.name loop
        with further as (
            select distinct on (other) other, waiting
            from (
                select other, known.name as waiting
                from {schema}.task_group as known
                cross join unnest(known.waits_for) as other
                where what = 'group' and known.name = any (reached)
                union all
                select upstream, downstream
                from {schema}.dependency
                where what = 'periodic task' and downstream = any (reached)
            ) as known
            where not waits_of ? other
            order by other, waiting
        )
        select waits_of || coalesce(jsonb_object_agg(other, waiting), '{}'), array_agg(other)
        into waits_of, reached
        from further;
    end loop;
    if not waits_of ? circle_of.name then
        return null;
    end if;
    path := {schema}.quoted(step);
    loop
        step := waits_of ->> step;
        path := {schema}.quoted(step) || case what when 'group' then ' waits for ' else ' runs after ' end || path;
        exit when step = circle_of.name;
    end loop;
    return path;
end
$$;

-- Have authors of `waits_for`, or of `after`, come one after the other until their transactions end: two at the same
-- time could close a circle that neither sees. They write the same row, which no user but the owner can lock. (Every
-- user of the database could take an advisory lock.) Under REPEATABLE READ the second does not see what the first has
-- committed since it began; it fails with 40001, and may try again. One write for each transaction, however many rows
-- it has. It acts for the owner: nothing else writes that table.
create or replace function {schema}.one_author(what text) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
as $$
declare
    holder text;
begin
    if exists (
        select from {schema}.last_author as known
        where known.what = one_author.what and known.transaction = pg_current_xact_id_if_assigned())
    then
        return;
    end if;
    -- Mostly it need not wait. Then it has no subtransaction, whose end hides which session has the lock.
    perform from {schema}.last_author as known where known.what = one_author.what for update skip locked;
    if not found then
        begin
            perform from {schema}.last_author as known where known.what = one_author.what for update;
        exception when lock_not_available then
            select format('the session %s of %s (%s)', activity.pid, {schema}.quoted(activity.usename::text),
                          {schema}.quoted(activity.application_name))
            into holder
            from {schema}.last_author as known
            join pg_locks as lock on lock.locktype = 'transactionid' and lock.granted
                and lock.transactionid = known.xmax
            join pg_stat_activity as activity on activity.pid = lock.pid
            where known.what = one_author.what;
            raise exception using errcode = 'lock_not_available',
                message = format('another transaction has written %s, and has not ended for 5 seconds: %s',
                                 one_author.what, coalesce(holder, 'pg_stat_activity shows which are open')),
                hint = 'Try again when it has ended, or end its session with pg_terminate_backend().';
        end;
    end if;
    update {schema}.last_author as known
    set transaction = pg_current_xact_id()
    where known.what = one_author.what;
end
$$;

revoke execute on function {schema}.one_author(text) from public;

-- Have authors of `waits_for` come one after the other, before they lock a row.
create or replace function {schema}.task_group_to_be_written() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform {schema}.one_author('task_group.waits_for');
    return null;
end
$$;

revoke execute on function {schema}.task_group_to_be_written() from public;

drop trigger if exists task_group_to_be_written on {schema}.task_group;
create trigger task_group_to_be_written
    before insert or update of waits_for on {schema}.task_group
    for each statement execute function {schema}.task_group_to_be_written();

-- Refuse a group that is wrong before it is written. `state` and `paused` say the same: a write of one of them sets
-- the other. Beats move a group between active and waiting; for an author the two are one.
create or replace function {schema}.task_group_written() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'INSERT' and new.paused and new.state = 'active'
        or tg_op = 'UPDATE' and new.paused and not old.paused and new.state = old.state
    then
        new.state := 'paused';
    elsif tg_op = 'UPDATE' and not new.paused and old.paused and new.state = old.state then
        new.state := 'active';
    end if;
    if new.waits_for = '{}' then
        new.waits_for := null;
    end if;
    if new.waits_for is null and new.state = 'waiting' then
        new.state := 'active';
    end if;
    new.paused := case when new.paused is not null then coalesce(new.state = 'paused', false) end;
    if not new.paused then
        new.pause_reason := null;
    end if;
    perform {schema}.validate_group(new);
    if tg_op = 'INSERT' or new.waits_for is distinct from old.waits_for or new.name <> old.name then
        perform {schema}.validate_order_of_groups(new);
    end if;
    new.rate_interval := {schema}.rate_interval_of(new.rate_limit);
    return new;
end
$$;

drop trigger if exists task_group_written on {schema}.task_group;
create trigger task_group_written
    before insert
        or update of name, max_active, paused, pause_reason, ordered, state, waits_for, pause_on_failure, rate_limit
    on {schema}.task_group
    for each row execute function {schema}.task_group_written();

-- Set whether the rows of a group are paused; returns how many changed. In name order, as everywhere where many rows
-- are written. The trigger of each row decides what its resumption means. A beat leaves out the rows that another
-- transaction has locked (pause_failed_groups): `sync_group_pauses` does those later, and no beat waits for an author.
create or replace function {schema}.regroup_members(name text, paused boolean) returns int
language plpgsql
as $$
declare
    names text[];
    changed int;
begin
    if current_setting('celery.leaves_locked_rows', true) = 'on' then
        names := array(
            select member.name from {schema}.periodic_task as member
            where member.group_paused = not regroup_members.paused and member.group_name = regroup_members.name
            order by member.name
            for no key update skip locked);
    else
        names := array(
            select member.name from {schema}.periodic_task as member
            where member.group_paused = not regroup_members.paused and member.group_name = regroup_members.name
            order by member.name
            for no key update);
    end if;
    update {schema}.periodic_task as member
    set group_paused = regroup_members.paused
    where member.name = any (names) and member.group_paused = not regroup_members.paused
        and member.group_name = regroup_members.name;
    get diagnostics changed = row_count;
    return changed;
end
$$;

-- A write to a group reaches its rows at once, and a beat looks whether a job has its turn now (also if none is seen to
-- wait here: it may begin to at this moment). When a group is resumed,
-- or does not pause itself any more, its failures are forgotten.
create or replace function {schema}.task_group_changed() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    waiting text;
begin
    if tg_op = 'UPDATE' and old.state in ('active', 'waiting') and new.state in ('active', 'waiting')
        and old.state <> new.state and to_jsonb(old) - 'state' = to_jsonb(new) - 'state'
    then
        return null;  -- A beat says so, and knows it.
    end if;
    if tg_op <> 'INSERT' and (tg_op = 'DELETE' or new.name <> old.name) then
        select name into waiting from {schema}.task_group
        where waits_for is not null and waits_for @> array[old.name] order by name limit 1;
        if found then
            raise exception using errcode = 'object_in_use', table = 'task_group',
                message = format('The group %s waits for the group %s.',
                                 {schema}.quoted(waiting), {schema}.quoted(old.name)),
                hint = format('Take %s out of its column waits_for first.', {schema}.quoted(old.name));
        elsif tg_op = 'UPDATE' and {schema}.has_waiting(old.name) then
            raise exception using errcode = 'object_in_use', table = 'task_group',
                message = format('Jobs wait in the group %s: a job knows its group by the name.',
                                 {schema}.quoted(old.name)),
                hint = 'Rename the group when none waits.';
        end if;
        perform {schema}.regroup_members(old.name, false);
        delete from {schema}.group_failure where group_name = old.name;
    elsif tg_op = 'UPDATE' and (old.paused and not new.paused or old.pause_on_failure and not new.pause_on_failure) then
        delete from {schema}.group_failure where group_name = old.name;
    end if;
    if tg_op <> 'DELETE' then
        perform {schema}.regroup_members(new.name, new.paused);
    end if;
    insert into {schema}.group_to_check (group_name)
    select distinct name from unnest(array[old.name, new.name]) as name
    where name is not null;
    perform pg_notify({channel}, '');
    return null;
end
$$;

revoke execute on function {schema}.task_group_changed() from public;

drop trigger if exists task_group_changed on {schema}.task_group;
create trigger task_group_changed
    after insert or delete
        or update of name, max_active, paused, pause_reason, ordered, state, waits_for, pause_on_failure, rate_limit
    on {schema}.task_group
    for each row execute function {schema}.task_group_changed();

-- Whether a periodic task names a group, or a row of task_group does.
create or replace function {schema}.is_a_group(name text) returns boolean
language sql stable
as $$
    select exists (select from {schema}.task_group as known where known.name = is_a_group.name)
        or exists (select from {schema}.periodic_task as member
                   where member.group_paused in (true, false) and member.group_name = is_a_group.name)
$$;

-- The group that may have been meant, as the end of a sentence; NULL if none is similar.
create or replace function {schema}.similar_group_in_words(name text) returns text
language sql stable
as $$
    select '. Did you mean ' || {schema}.quoted(meant) || '?'
    from unnest({schema}.similar_names(similar_group_in_words.name)) as meant
    where {schema}.is_a_group(meant)
    order by meant
    limit 1
$$;

-- Fail if there is no such group.
create or replace function {schema}.refuse_group_of_nobody(name text) returns void
language plpgsql
as $$
begin
    if refuse_group_of_nobody.name is null then
        raise exception using errcode = 'invalid_parameter_value', message = 'name is null, not the name of a group';
    elsif not {schema}.is_a_group(refuse_group_of_nobody.name) then
        raise exception using errcode = 'no_data_found', table = 'task_group',
            message = format('No group is named %s', {schema}.quoted(refuse_group_of_nobody.name))
                || coalesce({schema}.similar_group_in_words(refuse_group_of_nobody.name), '.'),
            hint = 'A group is named by the column group_name of a periodic task, or by define_group().';
    end if;
end
$$;

-- A job that begins to wait for its turn, or for other tasks, may have waited long enough at once.
create or replace function {schema}.active_job_waits() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.wait_reason = 'slot' then
        insert into {schema}.group_to_check (group_name) values (new.group_name);
    else
        insert into {schema}.dependency_to_check (downstream) values (new.periodic_task);
    end if;
    return null;
end
$$;

drop trigger if exists active_job_waits on {schema}.active_job;
create trigger active_job_waits
    after insert or update of wait_reason on {schema}.active_job
    for each row when (new.wait_reason in ('slot', 'upstream'))
    execute function {schema}.active_job_waits();

-- Fail if a group takes no new jobs.
create or replace function {schema}.refuse_finished_group(group_name text) returns void
language plpgsql
as $$
begin
    if {schema}.is_finished(refuse_finished_group.group_name) then
        raise exception using errcode = 'object_not_in_prerequisite_state', table = 'task_group',
            message = format('The group %s is finished: it takes no new jobs.',
                             {schema}.quoted(refuse_finished_group.group_name)),
            hint = 'Open it first, with resume_group().';
    end if;
end
$$;

-- Run the jobs again that have paused a group, each for the instant that it was scheduled for, so that it comes before
-- those that wait; returns how many. For resume_group(): a role that may not write a job may have just these
-- run again. One that runs again already, or has succeeded after all (start_lost), is left alone.
create or replace function {schema}.retry_failures_of(group_name text) returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    failure record;
    retried uuid;
    made uuid[] := '{}';
begin
    for failure in
        select job, periodic_task, scheduled_for from {schema}.group_failure as known
        where known.group_name = retry_failures_of.group_name and not known.retried
            and not exists (select from {schema}.active_job as other where other.id = known.job)
            and not exists (
                select from {schema}.finished_job as other where other.id = known.job and other.state = 'succeeded')
        order by scheduled_for, failed_at, job
    loop
        -- What only waits in the group is behind this one, and does not keep it from running.
        select job into retried
        from {schema}.retry_job(failure.job, force => not exists (
            select from {schema}.active_job as other
            where other.periodic_task = failure.periodic_task and other.wait_reason is null
                and other.id <> all (made))) as job;
        update {schema}.active_job as job set scheduled_for = failure.scheduled_for where job.id = retried;
        made := made || retried;
    end loop;
    return cardinality(made);
end
$$;

revoke execute on function {schema}.retry_failures_of(text) from public;
