-- What people decide about failed jobs; see internal/decisions.sql.

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
