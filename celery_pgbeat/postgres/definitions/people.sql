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

-- Only for statements that end a wait (they set waits_for) or change the owner.
drop trigger if exists work_taken_or_released on {schema}.active_job;
create trigger work_taken_or_released
    after update of waits_for, owner on {schema}.active_job
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

-- Give a job for people to a person; returns the name of its periodic task. `targets` are the roles of the owner, for a
-- job that is for a role. Of two persons who pick it up, the second gets an error with the name of the first. The first
-- may ask again. If another transaction has locked the job, this does not wait for its end: lock_timeout.
create or replace function {schema}.pick_up(id uuid, owner text, targets text[] default null) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '40ms'
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    found_name text;
begin
    perform {schema}.validate_person(pick_up.id, pick_up.owner, pick_up.targets, true);
    begin
        update {schema}.active_job as job
        set state = 'running',
            owner = pick_up.owner,
            started_at = coalesce(job.started_at, {schema}.now()),
            attempt_at = {schema}.now()
        where job.id = pick_up.id and job.state = 'created'
            and (job.target is null or pick_up.owner = any (job.target) or job.target && pick_up.targets)
        returning job.periodic_task into found_name;
    exception when lock_not_available then
        perform {schema}.refuse_work_in_change(pick_up.id);
    end;
    if found_name is not null then
        perform {schema}.record_act('picked_up', found_name, job => pick_up.id, who => pick_up.owner);
    else
        select job.periodic_task into found_name from {schema}.active_job as job
        where job.id = pick_up.id and job.state = 'running' and job.owner = pick_up.owner;
    end if;
    if found_name is null then
        perform {schema}.refuse_work(pick_up.id, 'pick up', pick_up.owner);
    end if;
    return found_name;
end
$$;

revoke execute on function {schema}.pick_up(uuid, text, text[]) from public;

-- Give a job for people back, for others to take; returns the name of its periodic task. With `owner` only if it is
-- with that one.
create or replace function {schema}.release(id uuid, owner text default null) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '40ms'
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    found_name text;
begin
    perform {schema}.validate_person(release.id, release.owner, null, release.owner is not null);
    begin
        update {schema}.active_job as job
        set state = 'created', owner = null
        where job.id = release.id and job.kind = 'human' and job.state = 'running'
            and (release.owner is null or job.owner = release.owner)
        returning job.periodic_task into found_name;
    exception when lock_not_available then
        perform {schema}.refuse_work_in_change(release.id);
    end;
    if found_name is null then
        perform {schema}.refuse_work(release.id, 'release', release.owner);
    end if;
    perform {schema}.record_act('released', found_name, job => release.id, who => release.owner);
    return found_name;
end
$$;

revoke execute on function {schema}.release(uuid, text) from public;

-- End a job for people that a person has; returns the name of its periodic task. With `owner` only if it is with that
-- one. The note stands in the history, and of a failed job in its error too, where all look for it.
create or replace function {schema}.finish(id uuid, outcome text, note text default null, owner text default null)
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '40ms'
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    done {schema}.active_job;
    wrong constant text := coalesce(
        {schema}.not_one_of('outcome', finish.outcome, 'succeeded', 'failed'),
        {schema}.not_a_short_text('note', finish.note));
begin
    perform {schema}.validate_person(finish.id, finish.owner, null, finish.owner is not null);
    if wrong is not null then
        raise exception using errcode = 'invalid_parameter_value', message = wrong;
    end if;
    begin
        -- In one statement, so that a failure pauses its group as that of any job (active_job_gone).
        with deleted as (
            delete from {schema}.active_job as job
            where job.id = finish.id and job.kind = 'human' and job.state = 'running'
                and (finish.owner is null or job.owner = finish.owner)
            returning job
        ),
        ended as (
            insert into {schema}.finished_job
            select final.* from deleted
            cross join lateral {schema}.archived(
                job, finish.outcome, note => finish.note,
                error => case when finish.outcome = 'failed' then nullif(finish.note, '') end) as final
        )
        select (job).* into done from deleted;
    exception when lock_not_available then
        perform {schema}.refuse_work_in_change(finish.id);
    end;
    if done.id is null then
        perform {schema}.refuse_work(finish.id, 'finish', finish.owner);
    end if;
    if done.pause_after_failures is not null then
        perform {schema}.count_end(done.periodic_task, done.id, finish.outcome);
    end if;
    perform {schema}.record_act(
        'finished', done.periodic_task, finish.note, done.id, details => jsonb_build_object('state', finish.outcome),
        who => done.owner);
    return done.periodic_task;
end
$$;

revoke execute on function {schema}.finish(uuid, text, text, text) from public;

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

-- Cancel a job that no worker runs, or one for people: it ends as revoked, with who cancelled it and why. Returns the
-- name of its periodic task. It has the caller's rights: a role that may only work may cancel only work.
create or replace function {schema}.cancel_job(id uuid, reason text default null) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    found_name text;
    wrong constant text := {schema}.not_a_short_text('reason', reason);
begin
    if id is null then
        raise exception using errcode = 'invalid_parameter_value', message = 'id is null, not the id of a job';
    elsif wrong is not null then
        raise exception using errcode = 'invalid_parameter_value', message = wrong;
    end if;
    perform {schema}.refuse_control('reason', reason);
    found_name := {schema}.cancel_work(id, reason);
    if found_name is null then
        if not has_function_privilege('{schema}.cancel_unstarted(uuid, text)', 'execute') then
            raise exception using errcode = 'insufficient_privilege', table = 'open_work',
                message = format('Job %s is no open task for people, and %s may cancel no other job', id, session_user);
        end if;
        found_name := {schema}.cancel_unstarted(id, reason);
    end if;
    if found_name is null then
        perform {schema}.refuse_cancel(id);
    end if;
    return found_name;
end
$$;

-- Have the message of a job sent again that the broker has lost, under the same id; returns the name of its periodic
-- task. If the message is there after all, the guard starts one of the two. A beat sends it at once, whatever became of
-- its row meanwhile (`recover`). It does not count among the three times that a beat sends a job again by itself.
create or replace function {schema}.resend_job(id uuid) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '40ms'
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    found_name text;
begin
    if resend_job.id is null then
        raise exception using errcode = 'invalid_parameter_value', message = 'id is null, not the id of a job';
    end if;
    begin
        update {schema}.active_job as job
        set state = 'pending',
            busy_until = {schema}.now() + job.pickup_deadline,
            check_at = '-infinity',
            sent_at = coalesce(job.sent_at, {schema}.now())
        where job.id = resend_job.id and job.state = 'sent' and job.attempt = 0 and job.tracking = 'full'
        returning job.periodic_task into found_name;
    exception when lock_not_available then
        perform {schema}.refuse_work_in_change(resend_job.id);
    end;
    if found_name is null then
        perform {schema}.refuse_resend(resend_job.id);
    end if;
    perform {schema}.record_act('resent', found_name, job => resend_job.id);
    perform pg_notify({channel}, '');
    return found_name;
end
$$;

revoke execute on function {schema}.resend_job(uuid) from public;

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
        when known.waits_for is not null then named || ' waits for its turn: a beat sends it then'
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

-- What a person has, and may take by name or by `targets`, the roles of that person: first what the person has, then
-- what is due first. One probe of the index of open_work for each name, however many jobs are open.
create or replace function {schema}.my_work(owner text, targets text[] default null, most int default 100)
returns table (
    id uuid, periodic_task text, subject text, task text, args jsonb, kwargs jsonb, scheduled_for timestamptz,
    state text, target text[], due_by timestamptz, overdue boolean, created_at timestamptz,
    picked_up_at timestamptz, stop_request text
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
#variable_conflict use_column
begin
    perform {schema}.validate_person(gen_random_uuid(), my_work.owner, my_work.targets, true);
    if (my_work.most between 1 and 10000) is not true then
        raise exception using errcode = 'invalid_parameter_value',
            message = format('most is %s, not 1 to 10000', coalesce(my_work.most::text, 'null'));
    end if;
    return query
    with mine as materialized (
        select job.id, row_number() over (order by job.due_by, job.scheduled_for, job.id) as place
        from {schema}.active_job as job
        where job.owner = my_work.owner
        order by job.due_by, job.scheduled_for, job.id
        limit my_work.most
    ),
    open as materialized (
        select distinct probed.due_by, probed.scheduled_for, probed.job
        from (select distinct name from unnest(array['', my_work.owner] || my_work.targets) as name) as role
        cross join lateral (
            select work.due_by, work.scheduled_for, work.job
            from {schema}.open_work as work
            where work.target = role.name
            order by work.due_by, work.scheduled_for, work.job
            limit my_work.most
        ) as probed
        order by probed.due_by, probed.scheduled_for, probed.job
        limit my_work.most
    ),
    listed as materialized (
        select mine.id, mine.place from mine
        union all
        select open.job, my_work.most + row_number() over (order by open.due_by, open.scheduled_for, open.job)
        from open
        order by place
        limit my_work.most
    )
    select job.id, job.periodic_task, stored.subject, job.task,
        case when not (job.message ->> 'sensitive')::boolean then job.message -> 'args' end,
        case when not (job.message ->> 'sensitive')::boolean then job.message -> 'kwargs' end,
        job.scheduled_for, job.state, job.target, job.due_by,
        coalesce(job.due_by < {schema}.now(), false), job.created_at, job.started_at, job.stop_request
    from listed
    cross join lateral (
        select * from {schema}.active_job as known where known.id = listed.id
        offset 0
    ) as job
    left join lateral (
        select task.subject from {schema}.periodic_task as task where task.name = job.periodic_task
        offset 0
    ) as stored on true
    order by listed.place;
end
$$;

revoke execute on function {schema}.my_work(text, text[], int) from public;
