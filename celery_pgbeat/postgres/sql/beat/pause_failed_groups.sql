-- Pause the groups in which a job has failed and that pause themselves then; returns each with the reason.
--
-- The pause has its effect already: no job of the group gets its turn (why_stopped). A group whose row another
-- transaction locks is skipped, and its pause stays due; rows of it that are locked are left to sync_group_pauses. A
-- finished group stays finished, and is stopped all the same. A failure in a group that does not pause itself any more
-- is forgotten.
--
-- A function, because what is due is read again after the group is locked: a person may have resumed it meanwhile.
-- function
create or replace function {schema}.pause_failed_groups() returns table (name text, reason text)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    locked text[];
begin
    perform set_config('celery.leaves_locked_rows', 'on', true);
    with forgotten as (
        delete from {schema}.group_failure as failure
        where failure.pause_due and not exists (
            select from {schema}.task_group as known where known.name = failure.group_name and known.pause_on_failure)
        returning failure.group_name
    )
    insert into {schema}.group_to_check (group_name)
    select distinct group_name from forgotten;
    locked := array(
        select known.name from {schema}.task_group as known
        where known.name = any (array(select group_name from {schema}.group_failure where pause_due))
            and known.pause_on_failure
        order by known.name
        for no key update skip locked);
    return query
    with failed as materialized (
        select distinct on (failure.group_name) failure.group_name, failure.job, failure.periodic_task,
            failure.failed_at
        from {schema}.group_failure as failure
        where failure.pause_due and failure.group_name = any (locked)
        order by failure.group_name, failure.failed_at, failure.job
    ),
    noted as (
        update {schema}.group_failure as failure
        set pause_due = false
        where failure.pause_due and failure.group_name = any (locked)
    )
    update {schema}.task_group as known
    set paused = true,
        pause_reason = 'job ' || failed.job || ' of ' || {schema}.quoted(failed.periodic_task) || ' failed at '
            || {schema}.shown(failed.failed_at)
    from failed
    where failed.group_name = known.name and known.name = any (locked) and known.state in ('active', 'waiting')
    returning known.name, known.pause_reason;
    perform set_config('celery.leaves_locked_rows', 'off', true);
end
$$;
-- call
select name, reason from {schema}.pause_failed_groups()
