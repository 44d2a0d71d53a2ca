-- Why a row or a job does not go on: in words for people.

-- Since when a running job has kept a run of its own periodic task from starting; NULL if it has not. What is caught up
-- is older than the job that it waits for.
create or replace function {schema}.in_the_way_since(job {schema}.active_job) returns timestamptz
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return (
        select greatest(job.started_at, delayed)
        from least(
            (
                select scheduled_for from {schema}.finished_job
                where periodic_task = job.periodic_task and created_at >= job.created_at and blocked_by = job.id
                order by created_at
                limit 1
            ), (
                select scheduled_for from {schema}.active_job
                where periodic_task = job.periodic_task and wait_reason = 'predecessor' and id <> job.id
                order by scheduled_for
                limit 1
            )) as delayed
        where delayed is not null
    );
end
$$;

-- Where a job runs, since when, since when it has delayed its own runs, and what will end it.
create or replace function {schema}.run_in_words(job {schema}.active_job) returns text
language plpgsql stable
as $$
#variable_conflict use_column
begin
    return (
        select 'has been running since ' || {schema}.shown(coalesce(job.attempt_at, job.started_at))
            || coalesce(' on ' || {schema}.node_shown(job.worker), '')
            || case when job.attempt > 0 then format(' (attempt %s)', job.attempt + 1) else '' end
            || case when lives then '' else ', ' || {schema}.last_seen(job.worker) end
            || coalesce(', asked to ' || job.stop_request, '')
            || coalesce(', blocking its next runs since ' || {schema}.shown(in_the_way_since), '')
            || case
                when job.busy_until < {schema}.now()
                then ', silent past ' || {schema}.shown(job.busy_until) || ': a beat ' || action
                when not lives then ': a beat ' || action || ' unless it reports by '
                    || {schema}.shown(job.busy_until)
                when job.max_run_time is not null then ', with a max_run_time of ' || job.max_run_time
                when in_the_way_since is not null then ': it has no max_run_time, so no beat ends it'
                else ''
            end
        from (
            select
                exists (select from {schema}.node where id = job.worker and {schema}.is_recent(last_seen_at)) as lives,
                case
                    when job.on_lost = 'rerun' and job.stop_request is null then 'runs it again' else 'gives it up'
                end as action,
                {schema}.in_the_way_since(job) as in_the_way_since
        ) as known
    );
end
$$;

-- What a job waits for that has no slot in its group yet.
create or replace function {schema}.place_in_words(group_name text) returns text
language plpgsql stable
as $$
#variable_conflict use_column
begin
    return (
        select 'waits for a place in its group ' || {schema}.quoted(place_in_words.group_name) || coalesce(
            (
                select ', which ' || {schema}.why_held(known)
                from {schema}.task_group as known
                where known.name = place_in_words.group_name and known.limited
            ),
            (
                select case when {schema}.most_active(known) is null then '' else format(' (%s of %s taken%s)', (
                        select count(*) from {schema}.active_job as other
                        where other.group_name = known.name and other.slot is not null),
                    {schema}.most_active(known),
                    (
                        select ', the longest by job ' || other.id || ' of ' || {schema}.quoted(other.periodic_task)
                        from {schema}.active_job as other
                        where other.group_name = known.name and other.slot is not null
                        order by other.created_at
                        limit 1))
                end
                from {schema}.task_group as known
                where known.name = place_in_words.group_name and known.limited
            ), ', which has no limit any more')
    );
end
$$;

-- Upstream tasks that have not ended, for a sentence: 'a' (running) and 'b' (paused).
create or replace function {schema}.missing_in_words(names text[]) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select string_agg({schema}.quoted(named) || coalesce(' (' || known.state || ')', ''), ' and ' order by place)
        from unnest(names) with ordinality as given (named, place)
        left join {schema}.status as known on known.name = named
    );
end
$$;

-- What a job waits for whose upstream tasks have not all ended.
create or replace function {schema}.wait_for_others_in_words(job {schema}.active_job) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return (
        select case
            when ends.missing = '{}'
            then 'has waited for other tasks, which have ended: a beat takes it within a moment'
            else 'waits for the end of ' || {schema}.missing_in_words(ends.missing) || ' for its occurrence of '
                || {schema}.shown(job.scheduled_for) || ' or a later one'
        end
        from {schema}.periodic_task as task
        cross join lateral {schema}.ends_for(task.after, task.after_condition, job.scheduled_for) as ends
        where task.name = job.periodic_task
    );
end
$$;

-- What a row without a schedule waits for that runs after others.
create or replace function {schema}.row_after_in_words(task {schema}.periodic_task) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return (
        select case
            when ends.missing = '{}' and ends.occurrence is null
                and cardinality({schema}.all_before(task.after)) > {schema}.most_before()
            then format('it is not known whether it can run: more than %s tasks come before it', {schema}.most_before())
            when ends.missing = '{}' then 'the tasks after which it runs have ended: a beat takes it within a moment'
            else 'it runs when ' || {schema}.missing_in_words(ends.missing)
                || case when cardinality(ends.missing) = 1 then ' has' else ' have' end || ' ended for an occurrence '
                || 'after ' || {schema}.shown(greatest(task.last_run_at, task.planned_from))
        end
        from {schema}.due_after(task) as ends
    );
end
$$;

-- Which person has a job for people, or for which it waits, and until when it is to be done.
create or replace function {schema}.work_in_words(job {schema}.active_job) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select case
        when job.owner is not null
        then 'has been with ' || {schema}.quoted(job.owner) || ' since '
            || {schema}.shown(coalesce(job.attempt_at, job.started_at))
            || coalesce(', asked to ' || job.stop_request, '')
        else 'waits for ' || coalesce(
            (select string_agg({schema}.quoted(target), ' or ') from unnest(job.target) as target), 'a person')
            || ' to pick it up'
    end || case
        when job.due_by < {schema}.now() then ', overdue since ' || {schema}.shown(job.due_by)
        else coalesce(', to be done by ' || {schema}.shown(job.due_by), '')
    end
$$;

-- What a job that is not final does or waits for. `waiting_since` is busy_until minus pickup_deadline: since when it
-- has waited, or when its start is due.
create or replace function {schema}.job_in_words(job {schema}.active_job, no_tracker text) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
set intervalstyle = 'postgres'
as $$
#variable_conflict use_column
begin
    return (
        select 'job ' || job.id || ' ' || case case when job.owner is not null then 'created' else job.state end
            when 'created' then {schema}.work_in_words(job)
            when 'running' then {schema}.run_in_words(job)
            when 'pending' then
                case
                    when job.marked_by is null and waiting_since > {schema}.now()
                        then 'is held back by its blackout windows until '
                    else 'has waited to be sent since '
                end
                || {schema}.shown(waiting_since)
                || case
                    when starts_with(job.error, 'closed queue: ')
                        then ': the broker takes no message for its queue ('
                            || {schema}.escaped(left(substr(job.error, 15), 200)) || ')'
                    else ''
                end
                || coalesce(': ' || {schema}.mark_in_words(job.marked_by, job.marked_at, job.mark_lease), '')
                || case
                    when job.refusals = 0 then ''
                    else format(', and %s of 3 attempts to send it have failed (%s)', job.refusals,
                                {schema}.escaped(left(job.error, 200)))
                end
            when 'error' then
                'failed at ' || {schema}.shown(job.busy_until)
                || coalesce(' (' || {schema}.escaped(left(job.error, 200)) || ')', '')
                || ' and waits for a decision: retry_job or fail_job'
            when 'waiting' then {schema}.wait_for_others_in_words(job)
            when 'buffered' then
                case
                    when job.wait_reason = 'slot' then {schema}.place_in_words(job.group_name) else 'waits for its turn'
                end
            else
                case
                    when waiting_since > {schema}.now() then 'is with the broker, to start at '
                    else 'has waited with the broker for a worker since '
                end
                || {schema}.shown(waiting_since)
                || case
                    when job.state = 'retrying'
                    then ' (attempt ' || job.attempt + 1
                        || coalesce(' after ' || {schema}.escaped(left(job.error, 200)), '') || ')'
                    else ''
                end
                || case when job.resends > 0 then format(', sent again (%s of 3 times)', job.resends) else '' end
                || case
                    when job.tracking = 'result' then ', and only the result backend knows how it ends'
                    else coalesce(', and ' || no_tracker, '')
                end
                || case
                    when job.busy_until >= {schema}.now() then ''
                    else ', and its time was over at ' || {schema}.shown(job.busy_until)
                end
        end
        from (
            select case when job.wait_reason is null then job.busy_until - job.pickup_deadline end as waiting_since
        ) as known
    );
end
$$;

-- That the broker has lost the message of a job that waits there.
create or replace function {schema}.lost_message_in_words() returns text
language sql immutable parallel safe
as $$
    select 'the broker has lost its message: send it again (celery-pgbeat job resend ID) or end it '
        || '(celery-pgbeat job cancel ID)'
$$;

-- Until when nothing of a periodic task is sent, because the clock was ahead when it was last decided or planned; else
-- NULL. A little ahead is normal: decided while this statement ran, or over before anybody can act.
create or replace function {schema}.ahead_until(task {schema}.periodic_task) returns timestamptz
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select until
    from greatest(task.last_run_at, task.planned_from) as until
    where until > {schema}.now() + {schema}.patience(task.mark_lease)
$$;

-- What a periodic task is waiting for by itself, whatever its jobs do.
create or replace function {schema}.row_in_words(task {schema}.periodic_task, no_beat text, beat_seen text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select case
        when not task.enabled and task.paused_until <= {schema}.now()
        then 'its pause was over at ' || {schema}.shown(task.paused_until) || ', and a beat has to resume it'
        when not task.enabled
        then 'it is paused' || coalesce(' by ' || {schema}.escaped(task.paused_by), '')
            || coalesce(' until ' || {schema}.shown(task.paused_until), '')
            || coalesce(' (' || {schema}.escaped(task.pause_reason) || ')', '')
        when task.group_paused
        then 'its group ' || {schema}.quoted(task.group_name) || ' is paused' || coalesce((
            select ' (' || {schema}.escaped(pause_reason) || ')' from {schema}.task_group
            where name = task.group_name), '')
        when {schema}.is_finished(task.group_name)
        then 'its group ' || {schema}.quoted(task.group_name) || ' is finished: its occurrences are skipped'
        when task.problem is not null then 'it cannot be planned: ' || rtrim({schema}.escaped(task.problem), '.')
        when task.next_run_at <= {schema}.now()
        then concat_ws('; ', 'its run has been due since ' || {schema}.shown(task.next_run_at),
                       {schema}.why_undecided(task, no_beat, beat_seen))
        when task.next_run_at is not null
        then 'its next run is at ' || {schema}.shown(task.next_run_at) || case
            when (task.planned_for < task.next_run_at) is not true then ''
            when task.blackout is null then ', spread by its jitter from ' || {schema}.shown(task.planned_for)
            when task.next_run_at - task.planned_for <= task.jitter
            then ', moved by its jitter or a blackout window from ' || {schema}.shown(task.planned_for)
            else ', the one of ' || {schema}.shown(task.planned_for)
                || ' is held back until then by its blackout windows ('
                || array_to_string(task.blackout, '; ') || ')'
        end || coalesce(
            ', for the clock of the database was ahead, and all up to ' || {schema}.shown({schema}.ahead_until(task))
            || ' counts as decided: call resume() to continue from now', '')
        when task.planned_revision <> task.revision
        then 'its next run has been waiting to be planned since ' || {schema}.shown(task.updated_at)
        when task.schedule is null and task.after is null then 'it has no schedule, only trigger() starts it'
        when task.run_count >= task.max_runs
        then format('it is finished: it has reached max_runs (%s)', task.max_runs)
        when task.schedule is null and (task.end_at < {schema}.now()) is not true
        then {schema}.row_after_in_words(task)
        when task.end_at is not null
        then 'it is finished: nothing is left before its end_at, ' || {schema}.shown(task.end_at)
        else 'it is finished: its schedule has no further occurrence'
    end
$$;

-- What became of the last job that is final, or of the last runs that were skipped; NULL where there is none.
create or replace function {schema}.last_in_words(name text) returns text
language sql stable
as $$
    select case
        when state <> 'skipped'
        then format('its last job, of %s, %s at %s', {schema}.shown(scheduled_for), case state
                when 'untracked' then 'was sent, and its end is not reported,'
                when 'lost' then case
                    when error like 'unsendable: %' then 'could not be sent, and was given up' else 'was lost'
                end
                when 'revoked' then 'was revoked'
                else state
            end, {schema}.shown(finished_at))
            || coalesce(' (' || {schema}.escaped(left(regexp_replace(error, '^unsendable: ', ''), 200)) || ')', '')
        else format(case
                when occurrences = 1 then 'its last run, of %2$s, was'
                else 'its last %1$s runs, from %2$s to %3$s, were'
            end, occurrences, {schema}.shown(scheduled_for), {schema}.shown(last_scheduled_for))
            || ' skipped: ' || reason
            || coalesce(', job ' || blocked_by || ' was in the way and ' || (
                select coalesce(
                    max(case
                        when other.state in ('succeeded', 'failed', 'expired') then 'has since ' || other.state
                        when other.state = 'untracked' then 'has since been sent'
                        else 'has since been ' || other.state
                    end),
                    'is not final yet')
                from {schema}.finished_job as other where other.id = last.blocked_by), '')
    end
    from {schema}.finished_job as last
    where periodic_task = last_in_words.name
    order by created_at desc, scheduled_for desc
    limit 1
$$;

-- Whether a beat has something to do for a periodic task, now or at its time.
create or replace function {schema}.waits_for_a_beat(task {schema}.periodic_task) returns boolean
language sql immutable
as $$
    select case
        when task.enabled
        then not task.group_paused and task.problem is null
            and (task.next_run_at is not null or task.planned_revision <> task.revision)
        else task.paused_until is not null
    end
$$;

-- The backfills of a row that are running; NULL if there are none.
create or replace function {schema}.backfills_in_words(name text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select case
        when running.number = 1 then format('a backfill of it, from %s to %s, %s',
            {schema}.shown(running.since), {schema}.shown(running.until),
            coalesce('has decided ' || running.decided || ' of ' || running.total || ' occurrences', 'has not begun'))
        when running.number > 1 then format('%s backfills of it are running', running.number)
    end
    from (
        select count(*) as number, min(since) as since, min(until) as until, sum(total) as total,
            sum(submitted + skipped) as decided
        from {schema}.backfill
        where periodic_task = backfills_in_words.name and state = 'running'
    ) as running
$$;

-- What became of the declarations in code of this name that beats refuse; NULL if there are none.
create or replace function {schema}.refusals_in_words(name text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select string_agg({schema}.refusal_in_words(app, reason), '; ' order by app)
    from {schema}.refused_declaration as refused
    where refused.name = refusals_in_words.name
$$;
