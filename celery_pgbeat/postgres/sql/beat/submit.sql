-- Submit the decided occurrences: write the jobs and move the next runs on, fenced by this very mark.
--
-- In these steps:
--   1. Submit by set what needs no verdict, because no other job blocks it: nearly all rows, nearly always.
--   2. Decide about the others, one by one, what their overlap policies make of the jobs that block them. This only
--      reads and locks: to write one row by itself takes Postgres as long as to write ten at once.
--   3. Remove the jobs that give way, and submit these rows too, by the statement of the first step.
--
-- A row that another transaction has locked is skipped, and the same beat tries again while its lease lasts. So is a
-- row with a job that another transaction has locked, and one whose other job is being sent at this moment and is final
-- with that: soon it blocks no more. A job whose group is limited (it has a max_active, a rate_limit or a waits_for, or
-- is ordered) is buffered, and `grant_slots` gives it its slot. One that comes after other tasks waits for their ends,
-- and `settle_downstream` sees them. An occurrence of a finished group, which takes no new jobs until a person resumes
-- it, is skipped. So is each one that a beat in shadow submits: nothing is sent, and it counts as a run, because the
-- other scheduler sends it.
--   What becomes of a blocked row depends on its jobs, so these are locked, and then read by another statement. It sees
-- what was committed before the locks, and which jobs could not be locked. `recover` drops a job because a newer
-- occurrence is due, and `judge` gives one up: if the new one was skipped for that job at the same moment, neither
-- would run. A key share lock is enough against them. It conflicts with what deletes a job, and neither a start nor a
-- heartbeat waits for it or skips the row. A job that may end here is locked against every change.
--   `given_up` has the rules of judge.sql. `may_judge`: as there, this beat has been in contact with Postgres for long
-- enough. `resending`: workers announce the tracker. Under tracking = 'send' the confirm of a job is its end. Under
-- 'result' no worker reports its start, so a job that is `sent` may be running.
--   old_next_run_at is that of the row when it was decided, for the fence. due_at is when the occurrence of the new job
-- was due: under `catchup` that is another instant. last_run_at is the last occurrence that is decided, whether it has
-- run or not. decided_until > last_run_at: an occurrence is decided once, whatever the clock or the row has.
--   A function, because that keeps its plans: planning this anew took as long as submitting ten rows. A plan knows
-- neither the table's size nor the batch's, and must serve any: rows are found by index, and what was decided is joined
-- to them by hash, never a thousand compared with a thousand. An `exists` with `offset 0` looks up each row by itself.
-- Without it, a plan that was made while the tables were small would read all jobs into a hash.
-- function
-- Whether a row may be submitted: it still has the mark and the next run that the beat decided about, it runs at all,
-- and nothing later has been decided. Only beats call it, and they may read the whole row. Its call is inlined: one
-- select, and nothing set.
create or replace function {schema}.is_as_decided(
    stored {schema}.periodic_task, marked_at timestamptz, next_run_at timestamptz, decided_until timestamptz
) returns boolean
language sql stable
as $$
    select stored.marked_at = is_as_decided.marked_at
        and stored.next_run_at = is_as_decided.next_run_at
        and stored.enabled and not stored.group_paused
        and (stored.pause_after_failures is null
            or not {schema}.pause_is_due(stored.name, stored.failures_from, stored.pause_after_failures))
        and is_as_decided.decided_until > coalesce(stored.last_run_at, '-infinity')
$$;

create or replace function {schema}.submit(
    beat text, timezone text, full_acts_as text, may_judge boolean, resending boolean, most_buffered int,
    shadow boolean, decisions {schema}.decision[]
) returns table (name text, made boolean, waits boolean, reason text, blocked_by uuid, lost uuid)
language plpgsql rows 10
set search_path = pg_catalog, pg_temp
{keeps_one_plan}
as $$
#variable_conflict use_column
declare
    submitted int;
    blocked record;
    locked uuid[];
    is_moving boolean;
    given_up uuid[];
    jobs int;
    waiting int;
    stopping uuid[];
    giving_way uuid[];
    not_run int;
    superseded int;
    caught_up boolean;
    verdicts {schema}.verdict[] := '{}';
    all_given_up uuid[] := '{}';
    all_stopping uuid[] := '{}';
    replaced uuid[] := '{}';
begin
    for round in 1..2 loop
        return query
        with planned as materialized (
            select given.*, verdict
            from unnest(decisions) as given
            left join unnest(verdicts) as verdict on verdict.name = given.name
        ),
        free as materialized (
            select stored as definition, planned.*, make_interval(secs => planned.pickup_deadline) as deadline,
                stored.mark_lease, stored.run_count,
                stored.overlap <> 'allow' and (planned.verdict).waits is not true as exclusive,
                case
                    when planned.job is null then null
                    when stored.group_name is not null and exists (
                        select from {schema}.task_group where name = stored.group_name and state = 'finished'
                        offset 0) then 'finished'
                    when submit.shadow then 'shadow'
                    else (planned.verdict).reason
                end as reason,
                case
                    when (planned.verdict).waits then 'predecessor'
                    when {schema}.waits_for_others(stored.after, stored.schedule) then 'upstream'
                    when stored.group_name is not null and exists (
                        select from {schema}.task_group where name = stored.group_name and limited
                        offset 0) then 'slot'
                end as wait_reason
            from {schema}.periodic_task as stored
            join planned on planned.name = stored.name
            where stored.name = any (array(select name from planned))
                and stored.marked_by = submit.beat
                -- What has a verdict is locked since it was as decided.
                and ((planned.verdict).name is not null
                    or {schema}.is_as_decided(
                        stored, planned.marked_at, planned.old_next_run_at, planned.decided_until))
                and (stored.overlap = 'allow' or planned.job is null or submit.shadow
                    or (planned.verdict).name is not null
                    or not exists (
                        select from {schema}.active_job as other where other.periodic_task = stored.name
                        offset 0)
                    or exists (
                        select from {schema}.task_group where name = stored.group_name and state = 'finished'
                        offset 0))
            order by stored.name
            for no key update of stored skip locked
        ),
        made as (
            insert into {schema}.active_job
            select created.* from free
            cross join lateral {schema}.new_job(
                definition, job, scheduled_for, due_at, origin, exclusive, wait_reason, deadline, submit.timezone,
                submit.full_acts_as, submit.beat, marked_at, mark_lease) as created
            where job is not null and reason is null
            on conflict do nothing
            returning id, state
        ),
        -- A row whose job is not made, because another transaction has made one at this moment, is not written: the
        -- loop below decides about it. If that comes after its verdict, its occurrence is skipped.
        done as materialized (
            select free.*, made.id is not null as made, coalesce(made.state <> 'pending', false) as waits,
                case when job is not null and made.id is null then coalesce(reason, 'overlap') end as skipped_for,
                case when reason is distinct from 'finished' then (verdict).blocked_by end as blocked_by,
                greatest(run_count - coalesce((verdict).superseded, 0)
                    + case when made.id is not null or reason = 'shadow' then 1 else 0 end, 0) as runs
            from free
            left join made on made.id = free.job
            where made.id is not null or job is null or reason is not null or (verdict).name is not null
        ),
        skipped as (
            insert into {schema}.finished_job (
                id, periodic_task, scheduled_for, last_scheduled_for, occurrences, origin, state, reason, blocked_by,
                created_at, finished_at, beat, due_at, {copied_to_history})
            select id, (definition).name, first, last, occurrences, origin, 'skipped', reason, blocked_by,
                {schema}.now(), {schema}.now(), submit.beat, due_at, {copied_to_history of (definition)}
            from (
                select definition, job, scheduled_for, null::timestamptz, 1, origin, skipped_for, blocked_by, due_at
                from done
                where skipped_for is not null
                union all
                select definition, gen_random_uuid(), skipped_first, skipped_last, skipped_count, 'schedule',
                    skipped_reason, null, null
                from done
                where skipped_count > 0
            ) as record (definition, id, first, last, occurrences, origin, reason, blocked_by, due_at)
        ),
        to_look_at as (
            insert into {schema}.dependency_to_check (upstream)
            select name from done
            where (skipped_for is not null or skipped_count > 0)
                and exists (select from {schema}.dependency where upstream = done.name offset 0)
        )
        update {schema}.periodic_task as task
        set next_run_at = case when (runs < task.max_runs) is not false then done.next_run_at end,
            planned_for = case when (runs < task.max_runs) is not false then done.planned_for end,
            last_run_at = done.decided_until,
            run_count = least(runs, 2000000000),
            timezone = coalesce(task.timezone, submit.timezone),
            pickup_deadline = done.deadline,
            planned_ahead = done.planned_ahead,
            due_ahead = done.due_ahead,
            marked_by = null,
            marked_at = null,
            taken_over = false
        from done
        where task.name = any (array(select name from planned)) and task.name = done.name
        returning task.name, done.made, done.waits, done.skipped_for,
            case when done.skipped_for is not null then done.blocked_by end, (done.verdict).lost;
        get diagnostics submitted = row_count;
        exit when round = 2 or submitted = cardinality(decisions);

        for blocked in
            select planned.name, planned.job, planned.origin, stored.overlap, stored.catchup
            from {schema}.periodic_task as stored
            join unnest(decisions) as planned on planned.name = stored.name
            where stored.name = any (array(select name from unnest(decisions)))
                and stored.marked_by = submit.beat
                and {schema}.is_as_decided(stored, planned.marked_at, planned.old_next_run_at, planned.decided_until)
                -- Without a job, in shadow or in a finished group a row needs no verdict: it was only locked.
                and planned.job is not null and not submit.shadow
                and (stored.group_name is null or not exists (
                    select from {schema}.task_group where name = stored.group_name and state = 'finished'
                    offset 0))
            order by stored.name
            for no key update of stored skip locked
        loop
            locked := array(
                select id from {schema}.active_job
                where periodic_task = blocked.name and (blocked.overlap <> 'allow' or id = blocked.job)
                    and (busy_until < {schema}.now() or blocked.overlap in ('cancel_other', 'terminate_other'))
                order by id
                for update skip locked)
                || array(
                select id from {schema}.active_job
                where periodic_task = blocked.name and (blocked.overlap <> 'allow' or id = blocked.job)
                    and not (busy_until < {schema}.now() or blocked.overlap in ('cancel_other', 'terminate_other'))
                order by id
                for key share skip locked);
            -- One statement, so one snapshot: a job that comes after it is no part of the verdict.
            select coalesce(bool_or(id <> all (locked) or is_being_sent), false),
                coalesce(array_agg(id) filter (where is_lost), '{}'),
                count(*) filter (where not is_lost),
                count(*) filter (where not is_lost and wait_reason = 'predecessor'),
                (array_agg(id order by wait_reason is not null, created_at) filter (where not is_lost))[1],
                coalesce(array_agg(id) filter (where not is_lost and not gives_way), '{}'),
                coalesce(array_agg(id) filter (where not is_lost and gives_way), '{}'),
                count(*) filter (
                    where not is_lost and gives_way and wait_reason is not null
                        and origin not in ('manual', 'backfill'))
            into is_moving, given_up, jobs, waiting, blocked_by, stopping, giving_way, not_run
            from (
                select id, wait_reason, created_at, origin,
                    state = 'pending' and tracking = 'send' and {schema}.is_marked(marked_at, mark_lease)
                        as is_being_sent,
                    submit.may_judge and busy_until < {schema}.now() and {is_beyond_repair} as is_lost,
                    state <> 'running' and not (tracking = 'result' and state = 'sent') as gives_way
                from {schema}.active_job
                where periodic_task = blocked.name and (blocked.overlap <> 'allow' or id = blocked.job)
            ) as other;
            continue when is_moving;

            waits := false;
            reason := null;
            superseded := 0;
            caught_up := blocked.origin = 'catchup' and blocked.catchup = 'all';
            if blocked.job = any (locked) then
                -- Its job is there already. The record says so, with that job as what blocks it.
                reason := 'overlap';
                blocked_by := blocked.job;
            elsif jobs > 0 then
                case blocked.overlap
                    when 'skip' then
                        waits := caught_up;
                        reason := case when not waits then 'overlap' end;
                    when 'buffer_one' then
                        waits := caught_up or waiting = 0;
                        reason := case when not waits then 'overlap' end;
                    when 'buffer_all' then
                        waits := caught_up or waiting < submit.most_buffered;
                        reason := case when not waits then 'limit' end;
                    when 'cancel_other', 'terminate_other' then
                        -- What does not run gives way, and what runs is asked to stop. What has waited and gives way
                        -- has not run.
                        waits := stopping <> '{}';
                        superseded := not_run;
                        replaced := replaced || giving_way;
                        all_stopping := all_stopping || stopping;
                    when 'allow' then
                        null;
                end case;
            end if;
            all_given_up := all_given_up || given_up;
            verdicts := verdicts
                || row(blocked.name, waits, reason, blocked_by, superseded, given_up[1])::{schema}.verdict;
        end loop;
        exit when verdicts = '{}';

        -- Before those that are given up: the end of such a job would promote one that gives way.
        if replaced <> '{}' then
            with gone as (
                delete from {schema}.active_job as job where id = any (replaced)
                returning job, periodic_task, wait_reason is not null as has_waited
            )
            insert into {schema}.finished_job
            select final.* from gone
            join unnest(decisions) as planned on planned.name = gone.periodic_task
            cross join lateral {schema}.archived(
                gone.job,
                case when has_waited then 'skipped' else 'revoked' end,
                case when has_waited then 'superseded' end,
                case
                    when not has_waited
                    then left('replaced for the next occurrence' || coalesce('; ' || (gone.job).error, ''), 2000)
                end,
                blocked_by => planned.job) as final;
        end if;
        if all_stopping <> '{}' then
            update {schema}.active_job as job
            set stop_request = case
                    when stored.overlap = 'terminate_other' then 'terminate' else coalesce(job.stop_request, 'cancel')
                end
            from {schema}.periodic_task as stored
            where job.id = any (all_stopping) and job.state = 'running'
                and stored.name = any (array(select name from unnest(decisions))) and stored.name = job.periodic_task;
        end if;
        if all_given_up <> '{}' then
            with gone as (
                delete from {schema}.active_job as job where id = any (all_given_up) returning job
            )
            insert into {schema}.finished_job
            select final.* from gone cross join lateral {schema}.lost(job) as final;
        end if;
    end loop;
end
$$;
-- call
select name, made, waits, reason, blocked_by, lost from {schema}.submit(
    %(beat)s, %(timezone)s, %(full_acts_as)s, %(may_judge)s, %(resending)s, %(most_buffered)s, %(shadow)s,
    %(decisions)s::{schema}.decision[])
