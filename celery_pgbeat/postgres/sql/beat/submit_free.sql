-- Submit the decided occurrences that no other job blocks: nearly all of them, nearly always.
--
-- What `submit` does in many steps for any row, in the few steps that such a row takes. A row that this leaves as it is
-- (another job blocks it or came in between, its group is limited or finished, it comes after other tasks, it is a task
-- for people, or another transaction locks the row) is left to `submit`. So is one of which occurrences are skipped and
-- others come after it. The fence, the order of locks and the result are the same.
--
-- A function, because that keeps its plan: planning this anew took as long as submitting ten rows. The plan knows
-- neither the table's size nor the batch's, and must serve any: rows are found by index, and what was decided is joined
-- to them by hash, never a thousand compared with a thousand. It is kept from the first time on, for one row as well.
-- An `exists` with `offset 0` looks up each row by itself. Without it, a plan that was made while the tables were small
-- would read all jobs into a hash.
-- function
create or replace function {schema}.submit_free(
    beat text, timezone text, full_acts_as text, decisions {schema}.decision[]
) returns table (name text, made boolean)
language plpgsql rows 10
set search_path = pg_catalog, pg_temp
{keeps_one_plan}
as $$
#variable_conflict use_column
begin
    return query
    with planned as materialized (
        select * from unnest(decisions)
    ),
    fenced as materialized (
        select stored as definition, planned.*, make_interval(secs => planned.pickup_deadline) as deadline,
            (stored.run_count + (planned.job is not null)::int < stored.max_runs) is not false as goes_on
        from {schema}.periodic_task as stored
        join planned on planned.name = stored.name
        where stored.name = any (array(select name from planned))
            and stored.marked_by = submit_free.beat
            and {is_as_decided}
            and stored.kind = 'task'
            and (stored.overlap = 'allow' or planned.job is null
                or not exists (
                    select from {schema}.active_job as other where other.periodic_task = stored.name
                    offset 0))
            and (planned.job is null or not {schema}.waits_for_others(stored.after, stored.schedule))
            and ((planned.skipped_count > 0) is not true
                or not exists (
                    select from {schema}.dependency where upstream = stored.name
                    offset 0))
            and (stored.group_name is null or planned.job is null
                or not exists (
                    select from {schema}.task_group
                    where name = stored.group_name and (limited or state = 'finished')
                    offset 0))
        order by stored.name
        for no key update of stored skip locked
    ),
    made as (
        insert into {schema}.active_job
        select created.* from fenced
        cross join lateral {schema}.new_job(
            definition, job, scheduled_for, due_at, origin, (definition).overlap <> 'allow', null, deadline,
            submit_free.timezone, submit_free.full_acts_as, submit_free.beat, marked_at,
            (definition).mark_lease) as created
        where job is not null
        on conflict do nothing
        returning id
    ),
    free as materialized (
        select * from fenced where job is null or job in (select id from made)
    ),
    skipped_together as (
        insert into {schema}.finished_job (
            id, periodic_task, scheduled_for, last_scheduled_for, occurrences, origin, state, reason,
            created_at, finished_at, beat, {copied_to_history})
        select gen_random_uuid(), name, skipped_first, skipped_last, skipped_count, 'schedule', 'skipped',
            skipped_reason, {schema}.now(), {schema}.now(), submit_free.beat, {copied_to_history of (definition)}
        from free
        where skipped_count > 0
    )
    update {schema}.periodic_task as task
    set next_run_at = case when free.goes_on then free.next_run_at end,
        planned_for = case when free.goes_on then free.planned_for end,
        last_run_at = free.decided_until,
        run_count = least(task.run_count + (free.job is not null)::int, 2000000000),
        timezone = coalesce(task.timezone, submit_free.timezone),
        pickup_deadline = free.deadline,
        planned_ahead = free.planned_ahead,
        due_ahead = free.due_ahead,
        marked_by = null,
        marked_at = null,
        taken_over = false
    from free
    where task.name = any (array(select name from planned)) and task.name = free.name
    returning task.name, free.job is not null;
end
$$;
-- call
select name, made from {schema}.submit_free(
    %(beat)s, %(timezone)s, %(full_acts_as)s, %(decisions)s::{schema}.decision[])
