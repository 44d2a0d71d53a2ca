-- Pausing what fails again and again: pause_after_failures.
--
-- The end of a job is counted in periodic_task_state, and later a beat pauses the periodic task (pause_failing.sql).
-- Between the two the pause is due, and has its effect already: no submit makes a job of the row, and recover skips its
-- unsent jobs. Neither side waits for an author: counting only reads the row, and what an author writes to the row (a
-- resume, for instance) does not touch the count. So a count has the `failures_from` of the row that it was made for:
-- when that has changed, the count is out of date.

-- Whether a pause is due: enough jobs of a periodic task have failed in a row, and no beat has paused it yet.
create or replace function {schema}.pause_is_due(name text, failures_from timestamptz, pause_after_failures int)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    return exists (
        select from {schema}.periodic_task_state as state
        where state.name = pause_is_due.name and state.pause_due and state.failures_from = pause_is_due.failures_from
            and state.failures_in_row >= pause_is_due.pause_after_failures);
end
$$;

-- Count the end of a job whose periodic task had pause_after_failures when it was made; returns whether that makes a
-- pause due. Only success and failure count. A success does not undo a pause that is due: a beat might already have
-- paused. A caller that counts several ends does so in name order, because each call locks the count of its name.
create or replace function {schema}.count_end(name text, job uuid, state text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    task record;
    due boolean;
begin
    if (count_end.state in ('succeeded', 'failed')) is not true then
        return false;
    end if;
    select enabled, pause_after_failures, failures_from into task
    from {schema}.periodic_task as stored
    where stored.name = count_end.name;
    if not found then
        return false;
    end if;
    if count_end.state = 'succeeded' then
        update {schema}.periodic_task_state as known
        set failures_in_row = 0, pause_due = false
        where known.name = count_end.name and failures_in_row > 0
            and not {schema}.pause_is_due(count_end.name, task.failures_from, task.pause_after_failures);
        return false;
    end if;
    insert into {schema}.periodic_task_state as known (
        name, failures_in_row, failures_from, last_failed_at, last_failed_job, pause_due)
    values (
        count_end.name, 1, task.failures_from, {schema}.now(), count_end.job,
        coalesce(task.enabled and task.pause_after_failures <= 1, false))
    on conflict (name) do update
    set (failures_in_row, pause_due) = (
            select failures, coalesce(task.enabled and task.pause_after_failures <= failures, false)
            from (
                select 1 + case
                    when known.failures_from = excluded.failures_from then least(known.failures_in_row, 2000000000)
                    else 0
                end as failures
            ) as counted),
        failures_from = excluded.failures_from,
        last_failed_at = excluded.last_failed_at,
        last_failed_job = excluded.last_failed_job
    returning pause_due into due;
    if due then
        perform pg_notify({channel}, '');
    end if;
    return due;
end
$$;
