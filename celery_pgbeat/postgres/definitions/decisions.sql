-- Failed jobs that wait for a decision: on_error = 'ask'.
--
-- Such a job is in state `error`. It is not final: it blocks its periodic task, and keeps its slot in its group, until
-- a person calls retry_job() or fail_job(). No beat looks at it meanwhile (check_at). Its next run has begun: no
-- message, report or heartbeat of the run that failed matches it any more.

-- Whether a failure of a job, reported by a worker in this state, waits for a decision. A job that was asked to end is
-- revoked. Where workers do not report the end, nothing waits: the result backend would report an old failure again.
create or replace function {schema}.asks(on_error text, tracking text, stop_request text, state text) returns boolean
language sql immutable parallel safe
as $$ select on_error = 'ask' and tracking = 'full' and stop_request is null and state = 'failed' $$;

-- Let a job wait for a decision. The caller has locked its row, knows that it asks, and counts the failure: counts are
-- locked in name order. `busy_until` says since when it waits.
create or replace function {schema}.ask(job uuid, error text, attempt int default null, worker text default null)
returns uuid
language sql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
    update {schema}.active_job as asking
    set state = 'error',
        token = null,
        run = least(asking.run + 1, 2000000000),
        attempt = coalesce(ask.attempt, asking.attempt),
        worker = coalesce(ask.worker, asking.worker),
        error = ask.error,
        marked_by = null,
        marked_at = null,
        busy_until = {schema}.now(),
        check_at = 'infinity'
    where asking.id = ask.job
    returning asking.id
$$;

-- Let a job that waits for a decision run again, under its own id; returns the name of its periodic task, or NULL if it
-- does not wait for one. As after a death under on_lost = 'rerun', it is sent whatever became of its row meanwhile.
create or replace function {schema}.run_again(job uuid) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    found_name text;
begin
    update {schema}.active_job as asking
    set state = 'pending',
        attempt = 0,
        resends = 0,
        refusals = 0,
        busy_until = {schema}.now() + asking.pickup_deadline,
        check_at = '-infinity'
    where asking.id = run_again.job and asking.state = 'error'
    returning asking.periodic_task into found_name;
    if found then
        perform {schema}.record_act('retried', found_name, job => run_again.job);
        perform pg_notify({channel}, '');
    end if;
    return found_name;
end
$$;

revoke execute on function {schema}.run_again(uuid) from public;

-- Give up a job that waits for a decision: it ends as failed, with who decided that and why; returns the name of its
-- periodic task. Its failure was counted when it failed: a lock on the count, held until the caller commits, would stop
-- a worker.
create or replace function {schema}.fail_job(id uuid, reason text default null) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    asking {schema}.active_job;
    known record;
    wrong constant text := {schema}.not_a_short_text('reason', fail_job.reason);
begin
    if fail_job.id is null then
        raise exception using errcode = 'invalid_parameter_value', message = 'id is null, not the id of a job';
    elsif wrong is not null then
        raise exception using errcode = 'invalid_parameter_value', message = wrong;
    end if;
    delete from {schema}.active_job as job
    where job.id = fail_job.id and job.state = 'error'
    returning job.* into asking;
    if not found then
        select job.periodic_task, job.state into known from {schema}.job where job.id = fail_job.id limit 1;
        if not found then
            raise exception using errcode = 'no_data_found', table = 'job',
                message = format('There is no job %s: jobs are kept for pgbeat_retention', fail_job.id);
        end if;
        raise exception using errcode = 'object_not_in_prerequisite_state', table = 'active_job',
            message = format('Job %s of %s is %s: it waits for no decision',
                             fail_job.id, {schema}.quoted(known.periodic_task), known.state);
    end if;
    insert into {schema}.finished_job
    select final.* from {schema}.archived(
        asking, 'failed',
        error => left('given up by ' || {schema}.acting_person() || coalesce(': ' || nullif(fail_job.reason, ''), '')
                      || coalesce('; ' || asking.error, ''), 2000)) as final;
    perform {schema}.record_act('failed', asking.periodic_task, fail_job.reason, asking.id);
    return asking.periodic_task;
end
$$;

revoke execute on function {schema}.fail_job(uuid, text) from public;
