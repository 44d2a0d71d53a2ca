-- Groups: what a write to `task_group` means, and which jobs of a group may have their turn.
--
-- A job of a group that is `limited` is buffered and waits for its turn, its slot; `grant_slots` gives it one.
-- Whether a job may have its turn is decided in `why_held` and `turns_in`: what grants, what looks whether there is
-- something to grant, and what explains why a job waits call these two. In which order the jobs have their turns is
-- decided in `next_in` (sql/beat/grant_slots.sql). A group that is not limited has no turns: `grant_slots` lets go what
-- still waits in it, unless it is stopped.
--
--   a group is | if                                                      | this means             | until
--   -----------+---------------------------------------------------------+------------------------+------------------
--   limited    | it has a max_active, a rate_limit or a waits_for, or is | its jobs wait for      | a person takes all
--              | ordered (a generated column)                            | their turns            | of these away
--   full       | no slot is free (`free_in`)                             | no job has its turn    | a job ends
--   waiting    | jobs wait in it, and a group of its waits_for is busy   | no job has its turn    | none of these is
--              | (a value of `state`, written by grant_slots)            |                        | busy
--   held       | there is a reason (`why_held`) for which no job has its | no job has its turn    | there is none
--              | turn, whatever is free                                  |                        |
--   paused     | a person has paused it, or a beat after a failure (a    | its rows are not due   | resume_group()
--              | value of `state`, and the column `paused`)              |                        |
--   stopped    | it keeps its jobs (`keeps_jobs`: it is ordered or has   | what waits stays; in   | resume_group()
--              | pause_on_failure), and it is paused or a job has failed | other paused groups it |
--              | (`why_stopped`)                                         | is skipped             |
--   finished   | a person has finished it (a value of `state`)           | it takes no new jobs;  | resume_group()
--              |                                                         | what waits goes on     |
--
-- A row of `group_to_check` is a reason to look at a group. One with `seen` was left by a beat that has looked: it
-- could not lock the group, has more to grant, or the jobs wait for what ends without another row (a rate limit, other
-- groups). `seen_groups_with_room` reads whether a job may have its turn by now.
--
-- An argument or an alias `known` is the stored row of the group.

-- Whether jobs of a group wait for their turn. In a group that has no row none does.
create or replace function {schema}.is_limited(group_name text) returns boolean
language plpgsql stable
as $$
begin
    return group_name is not null and exists (select from {schema}.task_group where name = group_name and limited);
end
$$;

-- Whether a group is paused, by what is committed. A pause and a row that joins the group at the same moment can miss
-- each other; `sync_group_pauses` repairs that.
create or replace function {schema}.is_paused(group_name text) returns boolean
language sql stable
as $$ select group_name is not null and exists (select from {schema}.task_group where name = group_name and paused) $$;

-- Whether a group takes no new jobs any more.
create or replace function {schema}.is_finished(group_name text) returns boolean
language sql stable
as $$
    select group_name is not null
        and exists (select from {schema}.task_group where name = group_name and state = 'finished')
$$;

-- The time from one job to the next under a rate limit, in Celery's notation: `10` and `10/s`, `100/m`, `0.5/h`. NULL
-- if it is no such text, or a rate that beats cannot keep.
create or replace function {schema}.rate_interval_of(rate_limit text) returns interval
language sql immutable parallel safe
as $$
    select duration
    from (
        select make_interval(secs => case found[2] when 'm' then 60 when 'h' then 3600 else 1 end
                                     / nullif(found[1]::float8, 0)) as duration
        from regexp_matches(rate_limit, '^ *([0-9]{1,9}(?:[.][0-9]{1,9})?) *(?:/ *([smh]))? *$') as found
    ) as read
    where duration > interval '0' and duration <= interval '366 days'
$$;

-- From where on the jobs of a group are counted under its rate limit. What was not used is kept for a tenth of a
-- second, in which a beat may not look, and no longer. A next turn that is further in the future than one interval
-- comes from a clock that was set back, and does not count.
create or replace function {schema}.rate_counts_from(known {schema}.task_group) returns timestamptz
language sql stable
as $$
    select greatest(
        case
            when known.next_turn_at <= {schema}.now() + known.rate_interval + interval '1 minute'
                then known.next_turn_at
        end,
        {schema}.now() - greatest(interval '100 milliseconds' - known.rate_interval, interval '0'))
$$;

-- A row of a group that is due before an instant and that no beat has decided yet; NULL if there is none. A row that
-- not every beat may decide (lazy) counts once a beat has marked it.
create or replace function {schema}.due_in_group(group_name text, before timestamptz) returns text
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
    select task.name
    from {schema}.periodic_task as task
    where {is_on task} and task.next_run_at <= {schema}.now() and task.group_name = due_in_group.group_name
        and coalesce(task.planned_for, task.next_run_at) < due_in_group.before
        and (not task.lazy or {schema}.is_marked(task.marked_at, task.mark_lease))
    order by task.next_run_at
    limit 1
$$;

-- Whether a group has anything under way, waiting or due.
create or replace function {schema}.is_busy(group_name text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    return exists (select from {schema}.active_job as job
                   where job.group_name = is_busy.group_name and job.slot is not null)
        or exists (select from {schema}.active_job as job
                   where job.group_name = is_busy.group_name and job.wait_reason = 'slot')
        or exists (select from {schema}.active_job as job
                   where job.group_name = is_busy.group_name and job.wait_reason = 'predecessor')
        or {schema}.due_in_group(is_busy.group_name, 'infinity') is not null;
end
$$;

-- The first group that a group waits for; NULL if nothing is under way, waiting or due in any of them.
create or replace function {schema}.busy_one_of(groups text[]) returns text
language sql stable
as $$
    select name from unnest(groups) with ordinality as other (name, place)
    where {schema}.is_busy(name)
    order by place
    limit 1
$$;

-- When the first job that waits for its turn in a group was scheduled.
create or replace function {schema}.first_scheduled_in(group_name text) returns timestamptz
language sql stable
as $$
    select scheduled_for from {schema}.active_job as job
    where job.wait_reason = 'slot' and job.group_name = first_scheduled_in.group_name
    order by scheduled_for
    limit 1
$$;

-- Whether the pause of a group keeps the jobs that wait for their turn. Those of other paused groups get it, and are
-- skipped when they would be sent, as those of a paused row.
create or replace function {schema}.keeps_jobs(known {schema}.task_group) returns boolean
language sql immutable parallel safe
as $$ select known.ordered or known.pause_on_failure $$;

-- Why a group is stopped until a person resumes it, in words that follow "the group"; NULL if it is not.
create or replace function {schema}.why_stopped(known {schema}.task_group) returns text
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
    select case
        when not {schema}.keeps_jobs(known) then null
        when known.paused then 'is paused' || coalesce(' (' || {schema}.escaped(known.pause_reason) || ')', '')
        when known.pause_on_failure then (
            select 'is stopped: job ' || failure.job || ' of ' || {schema}.quoted(failure.periodic_task)
                || ' has failed'
            from {schema}.group_failure as failure
            where failure.group_name = known.name
            order by failure.group_name, failure.job
            limit 1)
    end
$$;

-- Why no job of a group gets its turn now, whatever is free, in words that follow "the group"; NULL if nothing keeps
-- them.
create or replace function {schema}.why_held(known {schema}.task_group) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    other text := {schema}.why_stopped(known);
    first timestamptz;
begin
    if other is not null then
        return other;
    end if;
    if known.waits_for is not null then
        other := {schema}.busy_one_of(known.waits_for);
        if other is not null then
            return 'waits for the group ' || {schema}.quoted(other);
        end if;
    end if;
    if {schema}.rate_counts_from(known) > {schema}.now() then
        return format('may send the next at %s (rate_limit %s)', {schema}.shown({schema}.rate_counts_from(known)),
                      known.rate_limit);
    end if;
    if known.ordered then
        first := {schema}.first_scheduled_in(known.name);
        other := {schema}.due_in_group(known.name, first);
        if other is not null then
            return 'is ordered, and ' || {schema}.quoted(other) || ' is due before';
        end if;
        -- A job that waits for one of its own row, which has ended at this very moment.
        select waiting.periodic_task into other
        from {schema}.active_job as waiting
        where waiting.wait_reason = 'predecessor' and waiting.group_name = known.name and waiting.scheduled_for < first
            and not exists (
                select from {schema}.active_job as blocking
                where blocking.periodic_task = waiting.periodic_task
                    and blocking.wait_reason is distinct from 'predecessor'
                offset 0)
        order by waiting.scheduled_for
        limit 1;
        if found then
            return 'is ordered, and a job of ' || {schema}.quoted(other) || ' comes before';
        end if;
    end if;
    return null;
end
$$;

-- How many jobs of a group may be under way at a time; NULL: any number.
create or replace function {schema}.most_active(known {schema}.task_group) returns int
language sql immutable parallel safe
as $$ select case when known.ordered then 1 else known.max_active end $$;

-- How many places are free in a group, 0 or less if none is; NULL: any number.
create or replace function {schema}.free_in(known {schema}.task_group) returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
    select {schema}.most_active(known) - case
        when {schema}.most_active(known) is null then 0
        else (
            select count(*) from {schema}.active_job as job
            where job.group_name = known.name and job.slot is not null)
    end
$$;

-- How many jobs of a group may have their turn now; NULL: any number.
create or replace function {schema}.turns_in(known {schema}.task_group) returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    free constant bigint := {schema}.free_in(known);
    sendable bigint;
begin
    if free <= 0 or {schema}.why_held(known) is not null then
        return 0;
    end if;
    if known.rate_interval is not null then
        sendable := 1 + floor(extract(epoch from {schema}.now() - {schema}.rate_counts_from(known))
                              / extract(epoch from known.rate_interval));
    end if;
    return least(free, sendable);
end
$$;

-- Whether a job waits for its turn in a group.
create or replace function {schema}.has_waiting(group_name text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    return exists (
        select from {schema}.active_job as job
        where job.wait_reason = 'slot' and job.group_name = has_waiting.group_name);
end
$$;

-- The groups in which a job waits that may have its turn, by one probe of the index for each group in which one waits.
-- A group that is not limited any more keeps no job waiting, unless it is stopped.
create or replace function {schema}.groups_with_room() returns setof text
language sql stable rows 10
set search_path = pg_catalog, pg_temp
set jit = off
as $$
    with recursive waited_for as (
        (select group_name from {schema}.active_job where wait_reason = 'slot' order by group_name limit 1)
        union all
        select (
            select group_name from {schema}.active_job
            where wait_reason = 'slot' and group_name > waited_for.group_name
            order by group_name
            limit 1)
        from waited_for
        where group_name is not null
    )
    select waited_for.group_name
    from waited_for
    left join {schema}.task_group as known on known.name = waited_for.group_name
    where waited_for.group_name is not null
        and (known.name is null or {schema}.turns_in(known) is distinct from 0)
$$;

-- The groups in which a job may have its turn by now, of those in which a beat has seen that it could not. Many may
-- wait for the same other groups, so each of those is looked at once.
create or replace function {schema}.seen_groups_with_room() returns setof text
language plpgsql stable rows 10
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    return query
    with seen as materialized (
        select distinct group_name from {schema}.group_to_check where seen
    ),
    busy as materialized (
        select other
        from (
            select distinct unnest(known.waits_for) as other
            from seen
            join {schema}.task_group as known on known.name = seen.group_name
        ) as waited_for
        where {schema}.is_busy(other)
    )
    select seen.group_name::text
    from seen
    left join {schema}.task_group as known on known.name = seen.group_name
    where known.name is null
        or not coalesce(known.waits_for && array(select other from busy), false)
        and {schema}.turns_in(known) is distinct from 0;
end
$$;

-- When the next job may go in one of the groups whose jobs wait for the time that their rate limit sets.
create or replace function {schema}.next_turn_at() returns timestamptz
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    return (
        select min(known.next_turn_at)
        from {schema}.group_to_check as waiting
        join {schema}.task_group as known on known.name = waiting.group_name
        where waiting.seen and known.next_turn_at > {schema}.now()
            and known.next_turn_at <= {schema}.now() + known.rate_interval + interval '1 minute');
end
$$;
