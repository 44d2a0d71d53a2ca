-- Jobs for people: kind = 'human'.
--
--   created --pick_up--> running --finish--> succeeded, failed
--      ^                    |
--      +------release-------+          cancel_job ends either as revoked
--
-- Such a job is made as any other: a beat submits an occurrence, trigger() or a backfill makes it, it waits for its
-- turn or for a slot. When it would be sent, its state is `created` instead, and no message exists. No beat looks at it
-- (check_at), no deadline ends it (busy_until), and it has a token that no worker knows: so no report of a worker, also
-- of an older one or a forged one, matches it. The constraint active_job_of_people holds all that.
--
-- The table open_work has what may be picked up. Triggers keep it equal to the jobs in state `created`, whatever
-- statement makes, takes or deletes them. They fire for no other job.

-- What a new job for people is, in place of what a beat would send.
create or replace function {schema}.active_job_for_people() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    new.tracking := 'full';
    new.token := gen_random_uuid();
    new.marked_by := null;
    new.marked_at := null;
    new.sends := 0;
    new.busy_until := 'infinity';
    new.check_at := 'infinity';
    if new.state = 'pending' then
        new.state := 'created';
        new.due_by := {schema}.now() + new.due_in;
    end if;
    return new;
end
$$;

drop trigger if exists active_job_for_people on {schema}.active_job;
create trigger active_job_for_people
    before insert on {schema}.active_job
    for each row when (new.kind = 'human')
    execute function {schema}.active_job_for_people();

-- The state of a job that has waited when nothing keeps it any more: for people or to be sent.
create or replace function {schema}.ready_state(kind text) returns text
language sql immutable parallel safe
as $$ select case when kind = 'human' then 'created' else 'pending' end $$;

-- Until when a job that has waited counts as busy when nothing keeps it any more.
create or replace function {schema}.ready_busy_until(kind text, pickup_deadline interval) returns timestamptz
language sql stable parallel safe
as $$ select case when kind = 'human' then 'infinity' else {schema}.now() + pickup_deadline end $$;

-- When a beat looks at a job that has waited when nothing keeps it any more.
create or replace function {schema}.ready_check_at(kind text) returns timestamptz
language sql immutable parallel safe
as $$ select case when kind = 'human' then timestamptz 'infinity' else '-infinity' end $$;

-- Keep open_work equal to the jobs in state `created`, and notify listeners when there is one. A job that a person
-- has released is not new: the signal about it was sent, or it was picked up before.
create or replace function {schema}.work_changed() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    if tg_op <> 'INSERT' and old.state = 'created' then
        delete from {schema}.open_work where job = old.id;
    end if;
    if tg_op <> 'DELETE' and new.state = 'created' then
        insert into {schema}.open_work (target, due_by, scheduled_for, job, is_new)
        select target, coalesce(new.due_by, 'infinity'), new.scheduled_for, new.id,
            (tg_op = 'INSERT' or old.state in ('buffered', 'waiting')) and row_number() over (order by target) = 1
        from (select distinct unnest(coalesce(new.target, array['']))) as named (target);
        -- A channel's name has at most 63 bytes.
        perform pg_notify(left({channel}, 58) || '_work', new.id::text);
    end if;
    return null;
end
$$;

revoke execute on function {schema}.work_changed() from public;

drop trigger if exists work_created on {schema}.active_job;
create trigger work_created
    after insert on {schema}.active_job
    for each row when (new.state = 'created')
    execute function {schema}.work_changed();

-- Only for statements that end a wait (they set wait_reason) or change the owner.
drop trigger if exists work_taken_or_released on {schema}.active_job;
create trigger work_taken_or_released
    after update of wait_reason, owner on {schema}.active_job
    for each row when ((old.state = 'created') <> (new.state = 'created'))
    execute function {schema}.work_changed();

drop trigger if exists work_deleted on {schema}.active_job;
create trigger work_deleted
    after delete on {schema}.active_job
    for each row when (old.state = 'created')
    execute function {schema}.work_changed();

-- Refuse what cannot be the id of a job, an owner or a list of targets.
create or replace function {schema}.validate_person(id uuid, owner text, targets text[], has_owner boolean)
returns void
language plpgsql stable
as $$
declare
    wrong constant text := coalesce(
        case when validate_person.id is null then 'id is null, not the id of a job' end,
        case when has_owner then {schema}.not_a_name('owner', owner) end,
        {schema}.not_names('targets', nullif(targets, '{}'), 1000));
begin
    if wrong is not null then
        raise exception using errcode = 'invalid_parameter_value', message = wrong;
    end if;
    perform {schema}.refuse_control('owner', owner);
    perform {schema}.refuse_control('targets', array_to_string(targets, ''));
end
$$;

-- Fail: what a person wants to do with a job for people is not possible. Says why, and who has it.
create or replace function {schema}.refuse_work(id uuid, wanted text, owner text) returns void
language plpgsql
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    job record;
    named text;
begin
    select known.periodic_task, known.state, known.kind, known.owner, known.target into job
    from {schema}.active_job as known
    where known.id = refuse_work.id;
    if not found then
        select known.periodic_task, known.state, null as kind into job
        from {schema}.finished_job as known
        where known.id = refuse_work.id
        limit 1;
        if not found then
            raise exception using errcode = 'no_data_found', table = 'job',
                message = format('There is no job %s: jobs are kept for pgbeat_retention', refuse_work.id);
        end if;
        raise exception using errcode = 'object_not_in_prerequisite_state', table = 'open_work',
            message = format('Job %s of %s is over: %s', refuse_work.id, {schema}.quoted(job.periodic_task), job.state);
    end if;
    named := format('Job %s of %s', refuse_work.id, {schema}.quoted(job.periodic_task));
    if job.kind <> 'human' then
        raise exception using errcode = 'object_not_in_prerequisite_state', table = 'open_work',
            message = named || ' is no task for people: a worker does it';
    elsif job.state in ('buffered', 'waiting') then
        raise exception using errcode = 'object_not_in_prerequisite_state', table = 'open_work',
            message = named || ' waits for its turn: it cannot be picked up yet';
    elsif job.state = 'running' and (wanted = 'pick up' or job.owner <> refuse_work.owner) then
        raise exception using errcode = 'object_in_use', table = 'open_work',
            message = format('%s is with %s', named, {schema}.quoted(job.owner));
    elsif job.state = 'created' and wanted <> 'pick up' then
        raise exception using errcode = 'object_not_in_prerequisite_state', table = 'open_work',
            message = named || ' is not picked up: pick it up first';
    elsif job.state = 'created' and job.target is not null then
        raise exception using errcode = 'insufficient_privilege', table = 'open_work',
            message = format('%s is for %s, and %s is none of them', named,
                (select string_agg({schema}.quoted(target), ', ') from unnest(job.target) as target),
                {schema}.quoted(refuse_work.owner)),
            hint = 'Name the roles of the owner in targets, if one of them is meant.';
    end if;
    perform {schema}.refuse_work_in_change(refuse_work.id);
end
$$;

-- Fail: another transaction is about to change the job.
create or replace function {schema}.refuse_work_in_change(id uuid) returns void
language plpgsql
as $$
begin
    raise exception using errcode = 'lock_not_available', table = 'open_work',
        message = format('Another person takes or changes job %s at this moment: look again', id);
end
$$;

-- End a job for people as revoked, picked up or not; returns the name of its periodic task, NULL if it is no such job.
create or replace function {schema}.cancel_work(job uuid, reason text) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '40ms'
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    cancelled {schema}.active_job;
begin
    begin
        delete from {schema}.active_job as known
        where known.id = cancel_work.job and known.kind = 'human'
        returning known.* into cancelled;
    exception when lock_not_available then
        perform {schema}.refuse_work_in_change(cancel_work.job);
    end;
    if cancelled.id is not null then
        perform {schema}.record_cancelled(cancelled, cancel_work.reason);
    end if;
    return cancelled.periodic_task;
end
$$;

revoke execute on function {schema}.cancel_work(uuid, text) from public;

-- End a job of a worker as revoked that no worker runs; returns the name of its periodic task, NULL if there is no such
-- job. The broker may have its message: the guard drops it, because the job is final, as `submit` relies on for
-- cancel_other. Where no guard asks (`tracking`), a message that a beat sends at this moment would run, so such a job
-- is left alone.
create or replace function {schema}.cancel_unstarted(job uuid, reason text) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '40ms'
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    cancelled {schema}.active_job;
begin
    begin
        delete from {schema}.active_job as known
        where known.id = cancel_unstarted.job and known.kind = 'task' and known.state not in ('running', 'error')
            and (known.state <> 'pending' or known.tracking = 'full'
                or not {schema}.is_marked(known.marked_at, known.mark_lease))
        returning known.* into cancelled;
    exception when lock_not_available then
        perform {schema}.refuse_work_in_change(cancel_unstarted.job);
    end;
    if cancelled.id is not null then
        perform {schema}.record_cancelled(cancelled, cancel_unstarted.reason);
    end if;
    return cancelled.periodic_task;
end
$$;

revoke execute on function {schema}.cancel_unstarted(uuid, text) from public;

-- Who has cancelled a job and why, for its error.
create or replace function {schema}.cancelled_in_words(reason text) returns text
language sql stable
as $$ select left('cancelled by ' || {schema}.acting_person() || coalesce(': ' || nullif(reason, ''), ''), 2000) $$;

-- Record that a job was cancelled: in the history, where it ends as revoked, and in the table of changes. It writes
-- with the rights of its caller: only functions that have those of the owner can call it.
create or replace function {schema}.record_cancelled(job {schema}.active_job, reason text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into {schema}.finished_job
    select final.* from {schema}.archived(job, 'revoked', error => {schema}.cancelled_in_words(reason)) as final;
    perform {schema}.record_act('cancelled', job.periodic_task, reason, job.id);
end
$$;

-- Fail: a job that cannot be cancelled.
create or replace function {schema}.refuse_cancel(job uuid) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    known record;
    named text;
begin
    select found.periodic_task, found.state, found.finished_at is not null as is_final into known
    from {schema}.job as found
    where found.id = refuse_cancel.job
    limit 1;
    if not found then
        raise exception using errcode = 'no_data_found', table = 'job',
            message = format('There is no job %s: jobs are kept for pgbeat_retention', refuse_cancel.job);
    end if;
    named := format('Job %s of %s', refuse_cancel.job, {schema}.quoted(known.periodic_task));
    raise exception using errcode = 'object_not_in_prerequisite_state', table = 'finished_job',
        message = case
            when known.is_final then format('%s is over: %s', named, known.state)
            when known.state = 'error' then format('%s has failed: end it with fail_job()', named)
            when known.state = 'running' then format(
                '%s is running: end it with Celery, app.control.revoke(%L, terminate=True)', named, refuse_cancel.job)
            else format('A beat sends %s at this moment: look again', named)
        end;
end
$$;

-- Fail: a job that is not sent again, and what to do instead.
create or replace function {schema}.refuse_resend(job uuid) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    seen record;
    known {schema}.active_job;
    named text;
begin
    select job.periodic_task, job.state into seen from {schema}.job where job.id = refuse_resend.job limit 1;
    if not found then
        raise exception using errcode = 'no_data_found', table = 'job',
            message = format('There is no job %s: jobs are kept for pgbeat_retention', refuse_resend.job);
    end if;
    select * into known from {schema}.active_job as active where active.id = refuse_resend.job;
    named := format('Job %s of %s', refuse_resend.job, {schema}.quoted(seen.periodic_task));
    raise exception using errcode = 'object_not_in_prerequisite_state', table = 'broker', message = case
        when known.id is null then format('%s is over: %s', named, seen.state)
            || case when seen.state = 'succeeded' then '' else '. Run it again with retry_job()' end
        when known.kind = 'human' then named || ' is for people, and has no message'
        when known.state = 'pending' then named || ' is to be sent: a beat sends it'
        when known.wait_reason is not null then named || ' waits for its turn: a beat sends it then'
        when known.state = 'running' then named || ' is running: a worker has its message'
        when known.state = 'error' then named || ' has failed: decide about it with retry_job() or fail_job()'
        when known.tracking <> 'full' then format(
            '%s is not tracked in full (tracking is %s), so two messages of it could run: end it with cancel_job()',
            named, known.tracking)
        else format('%s waits for its attempt %s, whose message only Celery can make: end it with cancel_job(), and '
                    'run it again with retry_job()', named, known.attempt + 1)
    end;
end
$$;
