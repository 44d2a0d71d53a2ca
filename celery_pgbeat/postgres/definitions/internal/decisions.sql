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
