-- What people do with jobs for people, and with jobs that wait or run; see internal/people.sql.

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
    select job.id, job.periodic_task::text, stored.subject, job.task::text,
        case when not (job.message ->> 'sensitive')::boolean then job.message -> 'args' end,
        case when not (job.message ->> 'sensitive')::boolean then job.message -> 'kwargs' end,
        job.scheduled_for::timestamptz, job.state::text, job.target, job.due_by::timestamptz,
        coalesce(job.due_by < {schema}.now(), false), job.created_at::timestamptz, job.started_at::timestamptz,
        job.stop_request::text
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
