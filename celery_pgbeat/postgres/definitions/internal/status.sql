-- The present state, in words for people.
--
-- All of it is read from the tables and now() alone: it must be right when every beat is dead. So where a beat would
-- use a setting, this uses what the row has (the lease of its last mark), else the default.

-- A sentence with its full stop; a question has its own mark.
create or replace function {schema}.ended(sentence text) returns text
language sql immutable parallel safe
as $$ select sentence || case when right(sentence, 1) in ('.', '?') then '' else '.' end $$;

-- The state of a periodic task in a few words: what its job does, then what it is waiting for itself.
create or replace function {schema}.state_in_words(task {schema}.periodic_task, job {schema}.active_job) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select case
        when row_words = 'waiting' then coalesce(job_words, row_words) else concat_ws(', ', job_words, row_words)
    end
    from (
        select
            case
                when job.state in ('created', 'running') and job.kind = 'human'
                then job.state || case when job.due_by < {schema}.now() then ', overdue' else '' end
                when job.state in ('running', 'retrying') and job.busy_until < {schema}.now() then 'silent'
                when job.state = 'running' and job.max_run_time is null and {schema}.in_the_way_since(job) is not null
                then 'running past its next run without max_run_time'
                when job.state = 'sent' then 'queued'
                when job.state = 'pending' then 'to be sent'
                when job.wait_reason = 'slot' then 'waiting for a place in its group'
                when job.state = 'waiting' then 'waiting for other tasks'
                when job.state = 'buffered' then 'waiting for its turn'
                else job.state
            end as job_words,
            case
                when not task.enabled then 'paused' || coalesce(' until ' || {schema}.shown(task.paused_until), '')
                when task.group_paused then 'group paused'
                when {schema}.is_finished(task.group_name) then 'group finished'
                when task.problem is not null then 'problem'
                when task.next_run_at < {schema}.now() - {schema}.patience(task.mark_lease) then 'overdue'
                when task.next_run_at <= {schema}.now() then 'due'
                when {schema}.ahead_until(task) is not null and task.next_run_at is not null
                then 'decided ahead until ' || {schema}.shown({schema}.ahead_until(task))
                when task.next_run_at is not null then 'waiting'
                when task.planned_revision <> task.revision then 'to be planned'
                when task.schedule is null and task.after is not null then 'after other tasks'
                when task.schedule is null then 'on demand'
                else 'finished'
            end as row_words
    ) as known
$$;

-- The periodic tasks that wait for their first plan; one that is planned again keeps its next run meanwhile. Postgres
-- takes `<>` for nearly always true and would read them all, at an estimated cost for which it would even compile the
-- query.
create or replace function {schema}.to_be_planned() returns table (
    name text, updated_at timestamptz, mark_lease interval
)
language sql stable
set enable_seqscan = off
set jit = off
set search_path = pg_catalog, pg_temp
as $$
    select name, updated_at, mark_lease from {schema}.periodic_task
    where {is_on} and planned_revision <> revision and next_run_at is null
$$;

-- Since when a job is due that was not sent or not picked up: since its occurrence is due, whatever was tried since. A
-- person's, one of a backfill, one that has waited for others or for the end of a window: since it may be sent.
create or replace function {schema}.due_since(
    origin text, waited boolean, run int, resends int, ready_at timestamptz, created_at timestamptz, due_at timestamptz
) returns timestamptz
language sql immutable
as $$
    select case
        when origin in ('schedule', 'catchup') and not waited and run = 0
            and (resends > 0 or ready_at <= created_at + interval '1 second')
            then due_at
        else ready_at
    end
$$;

-- Why a job that is not final is late, as a code, and since when; no row if it is not. `health` has a short form of it.
create or replace function {schema}.late_job(
    job {schema}.active_job, is_lost boolean, no_tracker boolean
) returns table (code text, due_at timestamptz)
language sql stable rows 1
as $$
    select code, due_at
    from (
        select case
            when job.state = 'pending' then 'unsent'
            when job.state = 'error' then 'decision'
            when job.state = 'created' or job.owner is not null then 'work'
            -- If its group has no free slot, it waits as it should. If there is one, no beat has given it to a job.
            when job.wait_reason = 'slot' and job.group_name in (select {schema}.groups_with_room()) then 'forgotten'
            when job.wait_reason is not null then null
            when is_lost then 'lost_message'
            when job.busy_until < {schema}.now() - {schema}.patience(job.mark_lease) then 'silent'
            when job.state = 'running' then case
                when job.max_run_time is null and job.started_at < {schema}.now() - {schema}.patience(job.mark_lease)
                then 'blocking'
            end
            when job.resends > 0 or no_tracker and job.tracking <> 'result' then 'unstarted'
        end
    ) as known (code)
    cross join lateral (
        select case
            when code in ('unsent', 'unstarted') then {schema}.due_since(
                job.origin, job.waited, job.run, job.resends, job.busy_until - job.pickup_deadline, job.created_at,
                coalesce(job.due_at, job.scheduled_for))
            when code = 'work' then job.due_by
            when code = 'forgotten' then job.created_at
            when code = 'lost_message' then coalesce(job.due_at, job.scheduled_for)
            when code = 'blocking' then {schema}.in_the_way_since(job)
            else job.busy_until
        end
    ) as since (due_at)
    where due_at < {schema}.now() - {schema}.patience(job.mark_lease)
$$;
