-- Submit the decided occurrences: write the jobs and move the next runs on, fenced by this very mark.
--
-- One statement, in this order of data:
--   marked             the rows that still have this mark and this next run
--   blocking           the jobs that block them: those of the same periodic task
--   fenced             the rows whose blocking jobs stay as they are until this statement has committed
--   given_up           blocking jobs past busy_until that nothing can repair: they become lost and block no more
--   resolved           what the overlap policy does about the jobs that still block
--   replaced           jobs that do not run and give way to the new one: deleted
--   stop_requested     jobs that run and are to give way to the new one: they get a stop request
--   counted            how many jobs of each row were replaced, so whether the new one still has to wait
--   made               the new jobs
--   skipped            occurrences that were to get a job, and that another job blocks
--   skipped_together   occurrences that were to get none
--   to_look_at         reasons to look (dependency_to_check) at what comes after a row of which occurrences are skipped
--   advanced           the rows, with their next runs
-- A row that another transaction has locked is skipped, and the same beat tries again while its lease lasts. So is a
-- row whose other job is being sent at this moment and is final with that: soon it blocks no more. A job whose group
-- is limited (it has a max_active, a rate_limit or a waits_for, or is ordered) is buffered, and `grant_slots` gives it
-- its slot. One that comes after other tasks waits for their ends, and `settle_downstream` sees them. An occurrence of
-- a finished group, which takes no new jobs until a person resumes it, is skipped. So is each one that a beat in shadow
-- submits: nothing is sent, and it counts as a run, because the other scheduler sends it.
--   The decision about a row depends on the jobs that block it, so these are locked too. `recover` drops a job because
-- a newer occurrence is due, and `judge` gives one up. If this statement skipped the new occurrence for such a job at
-- the same moment, neither would run. A key share lock is enough against them: it conflicts with what deletes a job,
-- and neither a start nor a heartbeat waits for it or skips the row. What replaces a job or gives it up must also keep
-- out what changes it, so it takes the stronger lock. A job that has changed since this statement took its snapshot
-- (its ctid shows that) counts as locked by another transaction.
--   `given_up` has the rules of judge.sql, and `marked` those of submit_free.sql (fragments.py). `may_judge`: as for
-- judge.sql, this beat has been in contact with Postgres for long enough. `resending`: workers announce the tracker.
--   Under tracking = 'send' the confirm of a job is its end. Under 'result' no worker reports its start, so a job that
-- is `sent` may be running.
--   `made` reads `given_up` and `replaced` in full: nothing else orders two data-modifying CTEs. Unordered, the insert
-- runs first, meets the given-up job in the unique index, and the occurrence is skipped for nothing.
--   old_next_run_at is that of the row when it was decided, for the fence. due_at is when the occurrence of the new job
-- was due: under `catchup` that is another instant. last_run_at is the last occurrence that is decided, whether it has
-- run or not. decided_until > last_run_at: an occurrence is decided once, whatever the clock or the row has.
--   A function, because that keeps its plan: planning this anew took longer than submitting forty rows. As in
-- submit_free.sql, the plan must serve any table and any batch. A step looks up others by an index (lateral), in a
-- hashed list (`in`) or by a hash join, and the result comes in parts.
-- function
create or replace function {schema}.submit(
    beat text, timezone text, full_acts_as text, may_judge boolean, resending boolean, most_buffered int,
    shadow boolean, decisions {schema}.decision[]
) returns table (name text, made boolean, waits boolean, blocked_by uuid, finished_group text, lost uuid)
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
    marked as materialized (
        select stored as definition, stored.overlap, stored.group_name,
            stored.group_name is not null and exists (
                select from {schema}.task_group where name = stored.group_name and limited
                offset 0) as limited,
            stored.group_name is not null and exists (
                select from {schema}.task_group where name = stored.group_name and state = 'finished'
                offset 0) as finished,
            planned.*, make_interval(secs => planned.pickup_deadline) as deadline
        from {schema}.periodic_task as stored
        join planned on planned.name = stored.name
        where stored.name = any (array(select name from planned))
            and stored.marked_by = submit.beat
            and {is_as_decided}
            and (stored.overlap = 'allow' or planned.job is null or not exists (
                select from {schema}.active_job as other
                where other.periodic_task = stored.name and other.state = 'pending' and other.tracking = 'send'
                    and {schema}.is_marked(other.marked_at, other.mark_lease)
                offset 0))
        order by stored.name
        for no key update of stored skip locked
    ),
    blocking as materialized (
        select id, periodic_task, ctid::text as version, busy_until < {schema}.now() as is_silent
        from {schema}.active_job
        where periodic_task = any (array(select name from marked where job is not null and overlap <> 'allow'))
    ),
    locked as materialized (
        select id, ctid::text as version from {schema}.active_job
        where id = any (array(
            select id from blocking
            where not is_silent
                and periodic_task not in (
                    select name from marked where overlap in ('cancel_other', 'terminate_other'))))
        order by id
        for key share skip locked
    ),
    locked_to_end as materialized (
        select id, ctid::text as version from {schema}.active_job
        where id = any (array(
            select id from blocking
            where is_silent
                or periodic_task in (select name from marked where overlap in ('cancel_other', 'terminate_other'))))
        order by id
        for no key update skip locked
    ),
    fenced as materialized (
        select * from marked
        where name not in (
            select periodic_task from blocking
            where (id, version) not in (select id, version from locked union all select id, version from locked_to_end))
    ),
    given_up as (
        delete from {schema}.active_job as job
        where job.id = any (array(
            select id from {schema}.active_job
            where submit.may_judge
                and periodic_task = any (array(select name from fenced where job is not null and overlap <> 'allow'))
                and busy_until < {schema}.now()
                and {is_beyond_repair}
            for update skip locked))
        returning job, job.id, job.periodic_task
    ),
    archived as (
        insert into {schema}.finished_job
        select final.* from given_up cross join lateral {schema}.lost(job) as final
    ),
    resolved as materialized (
        select fenced.*, remaining.jobs as others, remaining.first as blocked_by,
            case
                when job is null then 'none'
                when finished then 'finished'
                when submit.shadow then 'shadow'
                when remaining.jobs = 0 then 'send'
                when overlap in ('cancel_other', 'terminate_other') then 'replace'
                when origin = 'catchup' and (definition).catchup = 'all' then 'wait'
                when overlap = 'buffer_one' and remaining.waiting = 0 then 'wait'
                when overlap = 'buffer_all' and remaining.waiting < submit.most_buffered then 'wait'
                when overlap = 'buffer_all' then 'limit'
                else 'overlap'
            end as action
        from fenced
        cross join lateral (
            select count(*) as jobs, count(*) filter (where other.wait_reason = 'predecessor') as waiting,
                (array_agg(other.id order by other.wait_reason is not null, other.created_at))[1] as first
            from {schema}.active_job as other
            where fenced.job is not null and fenced.overlap <> 'allow' and other.periodic_task = fenced.name
                and other.id not in (select id from given_up)
        ) as remaining
    ),
    replaced as (
        delete from {schema}.active_job as job
        where job.id = any (array(
            select id from {schema}.active_job
            where periodic_task = any (array(select name from resolved where action = 'replace'))
                and state <> 'running' and not (tracking = 'result' and state = 'sent')
                and id not in (select id from given_up)
            for update skip locked))
        returning job, job.periodic_task, job.wait_reason is not null as was_waiting, job.origin
    ),
    replaced_archived as (
        insert into {schema}.finished_job
        select final.* from replaced
        join resolved on resolved.name = replaced.periodic_task
        cross join lateral {schema}.archived(
            replaced.job,
            case when replaced.was_waiting then 'skipped' else 'revoked' end,
            case when replaced.was_waiting then 'superseded' end,
            case
                when not replaced.was_waiting
                    then left('replaced for the next occurrence' || coalesce('; ' || (replaced.job).error, ''), 2000)
            end,
            blocked_by => resolved.job) as final
    ),
    stop_requested as (
        update {schema}.active_job
        set stop_request = case
                when periodic_task in (select name from resolved where overlap = 'terminate_other') then 'terminate'
                else coalesce(stop_request, 'cancel')
            end
        where id = any (array(
            select id from {schema}.active_job
            where periodic_task = any (array(select name from resolved where action = 'replace'))
                and state = 'running' and id not in (select id from given_up)))
    ),
    counted as materialized (
        select resolved.*,
            action = 'wait' or action = 'replace' and others > coalesce(gone.jobs, 0) as waits,
            -- What waited and is replaced has not run.
            coalesce(gone.waited, 0) as superseded
        from resolved
        left join (
            select periodic_task, count(*) as jobs,
                count(*) filter (where was_waiting and origin not in ('manual', 'backfill')) as waited
            from replaced
            group by periodic_task
        ) as gone on gone.periodic_task = resolved.name
    ),
    made as (
        insert into {schema}.active_job
        select created.* from counted
        cross join lateral (
            select case
                when waits then 'predecessor'
                when {schema}.waits_for_others((definition).after, (definition).schedule) then 'upstream'
                when limited then 'slot'
            end as wait_reason
        ) as buffered
        cross join lateral {schema}.new_job(
            definition, job, scheduled_for, due_at, origin, overlap <> 'allow' and not waits, wait_reason, deadline,
            submit.timezone, submit.full_acts_as, submit.beat, marked_at, (definition).mark_lease) as created
        where action in ('send', 'wait', 'replace')
            and (select count(*) from given_up) >= 0
            and (select count(*) from replaced) >= 0
        on conflict do nothing
        returning id, periodic_task, state
    ),
    skipped as (
        insert into {schema}.finished_job (
            id, periodic_task, scheduled_for, origin, state, reason, blocked_by, created_at, finished_at, beat, due_at,
            {copied_to_history})
        select job, name, scheduled_for, origin, 'skipped',
            case when action in ('limit', 'finished', 'shadow') then action else 'overlap' end,
            case when action not in ('finished', 'shadow') then coalesce(blocked_by, (
                select other.id from {schema}.active_job as other
                where other.periodic_task = resolved.name and other.id not in (select id from given_up)
                order by other.created_at
                limit 1))
            end,
            {schema}.now(), {schema}.now(), submit.beat, due_at, {copied_to_history of (definition)}
        from resolved
        where job is not null and job not in (select id from made)
        returning periodic_task, blocked_by, case reason when 'finished' then group_name end as finished_group
    ),
    skipped_together as (
        insert into {schema}.finished_job (
            id, periodic_task, scheduled_for, last_scheduled_for, occurrences, origin, state, reason,
            created_at, finished_at, beat, {copied_to_history})
        select gen_random_uuid(), name, skipped_first, skipped_last, skipped_count, 'schedule', 'skipped',
            skipped_reason, {schema}.now(), {schema}.now(), submit.beat, {copied_to_history of (definition)}
        from fenced
        where skipped_count > 0
    ),
    to_look_at as (
        insert into {schema}.dependency_to_check (upstream)
        select name from resolved
        where (skipped_count > 0 or job is not null and job not in (select id from made))
            and exists (select from {schema}.dependency where upstream = resolved.name offset 0)
    ),
    advanced as (
        update {schema}.periodic_task as task
        set next_run_at = case when outcome.goes_on then outcome.next_run_at end,
            planned_for = case when outcome.goes_on then outcome.planned_for end,
            last_run_at = outcome.decided_until,
            run_count = least(greatest(task.run_count + outcome.made - outcome.superseded, 0), 2000000000),
            timezone = coalesce(task.timezone, submit.timezone),
            pickup_deadline = outcome.deadline,
            planned_ahead = outcome.planned_ahead,
            due_ahead = outcome.due_ahead,
            marked_by = null,
            marked_at = null,
            taken_over = false
        from (
            select *, ((definition).run_count + made - superseded < (definition).max_runs) is not false as goes_on
            from (
                select *, coalesce(job in (select id from made) or action = 'shadow', false)::int as made from counted
            ) as counted
        ) as outcome
        where task.name = any (array(select name from planned)) and task.name = outcome.name
        returning task.name
    )
    select name, name in (select periodic_task from made) as made,
        name in (select periodic_task from made where state <> 'pending') as waits, null::uuid as blocked_by,
        null as finished_group, null::uuid as lost
    from advanced
    union all
    select periodic_task, false, false, blocked_by, finished_group, null from skipped
    union all
    select periodic_task, false, false, null, null, id from given_up;
end
$$;
-- call
select name, made, waits, blocked_by, finished_group, lost from {schema}.submit(
    %(beat)s, %(timezone)s, %(full_acts_as)s, %(may_judge)s, %(resending)s, %(most_buffered)s, %(shadow)s,
    %(decisions)s::{schema}.decision[])
