-- Periodic tasks that come after others: the columns `after` and `after_condition`.
--
-- The upstream tasks of a row are those that its column `after` names; it is downstream of them. Whether they have
-- ended is read from the history alone, by the instants of their occurrences. So it does not matter which process
-- sees an end, how late, or how often.

-- Whether each occurrence of a row waits for others. A row without a schedule is not due before they have ended.
create or replace function {schema}.waits_for_others(after text[], schedule text) returns boolean
language sql immutable parallel safe
as $$ select after is not null and schedule is not null $$;

-- The column `after` as it is stored: each name once, in the order given; NULL for an empty list. What is no plain list
-- of names is left as it is, for validate_periodic_task to refuse.
create or replace function {schema}.each_name_once(names text[]) returns text[]
language sql immutable parallel safe
as $$
    select case
        when array_ndims(names) > 1 then names
        else (
            select array_agg(name order by place)
            from (
                select name, min(place) as place from unnest(names) with ordinality as given (name, place) group by name
            ) as once)
    end
$$;

-- Whether an occurrence that was skipped for this reason has ended with that: it could not run.
--
-- One that was left out (overlap, limit, superseded, too_late, blackout, min_gap, paused) has not ended: a later one of
-- the task runs in its place. If it counted, a task that takes longer than its interval would be over for others before
-- it has ended.
create or replace function {schema}.ends_by_skip(reason text) returns boolean
language sql immutable parallel safe
as $$ select reason in ('after', 'finished', 'not_allowed', 'not_sent') $$;

-- The first end of a periodic task for this occurrence or a later one; no row if there is none.
--
-- Several occurrences that one record skips have ended with the last of them. A record is made when its occurrence is
-- due, or later.
create or replace function {schema}.first_end(upstream text, since timestamptz)
returns table (id uuid, occurrence {schema}.instant, state text)
language plpgsql stable rows 1
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
begin
    return query
    select ended.id, ended.occurrence, ended.state
    from (
        (select final.id, final.scheduled_for as occurrence, final.state, final.finished_at
         from {schema}.finished_job as final
         where final.periodic_task = first_end.upstream and final.scheduled_for >= since
             and final.state <> 'skipped' and final.created_at >= since - interval '1 day'
         order by final.scheduled_for, final.finished_at desc
         limit 1)
        union all
        (select final.id, coalesce(final.last_scheduled_for, final.scheduled_for), final.state, final.finished_at
         from {schema}.finished_job as final
         where final.periodic_task = first_end.upstream
             and coalesce(final.last_scheduled_for, final.scheduled_for) >= since
             and final.state = 'skipped' and {schema}.ends_by_skip(final.reason)
             and final.created_at >= since - interval '1 day'
         order by coalesce(final.last_scheduled_for, final.scheduled_for), final.finished_at desc
         limit 1)
    ) as ended
    order by ended.occurrence, ended.finished_at desc
    limit 1;
end
$$;

-- The ends of a periodic task for the last occurrences after `since`, at most so many, the last one first; of each
-- occurrence the end that was recorded last.
create or replace function {schema}.last_ends(upstream text, since timestamptz, most int)
returns table (id uuid, occurrence {schema}.instant, state text, finished_at {schema}.instant)
language plpgsql stable rows 1
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
begin
    return query
    select distinct on (ended.occurrence) ended.id, ended.occurrence, ended.state, ended.finished_at
    from (
        (select distinct on (final.scheduled_for)
             final.id, final.scheduled_for as occurrence, final.state, final.finished_at
         from {schema}.finished_job as final
         where final.periodic_task = last_ends.upstream and final.scheduled_for > since
             and final.state <> 'skipped' and final.created_at >= since - interval '1 day'
         order by final.scheduled_for desc, final.finished_at desc
         limit most)
        union all
        (select distinct on (coalesce(final.last_scheduled_for, final.scheduled_for))
             final.id, coalesce(final.last_scheduled_for, final.scheduled_for), final.state, final.finished_at
         from {schema}.finished_job as final
         where final.periodic_task = last_ends.upstream
             and coalesce(final.last_scheduled_for, final.scheduled_for) > since
             and final.state = 'skipped' and {schema}.ends_by_skip(final.reason)
             and final.created_at >= since - interval '1 day'
         order by coalesce(final.last_scheduled_for, final.scheduled_for) desc, final.finished_at desc
         limit most)
    ) as ended
    order by ended.occurrence desc, ended.finished_at desc
    limit most;
end
$$;

-- The last record of a periodic task up to an instant, if that is an end; no row if it is none, or there is none.
create or replace function {schema}.end_by(upstream text, until timestamptz)
returns table (id uuid, occurrence {schema}.instant, state text)
language plpgsql stable rows 1
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
begin
    return query
    select last.id, last.occurrence, last.state
    from (
        select known.id, known.occurrence, known.state, known.reason
        from (
            (select final.id, final.scheduled_for as occurrence, final.state, final.reason, final.finished_at
             from {schema}.finished_job as final
             where final.periodic_task = end_by.upstream and final.scheduled_for <= until and final.state <> 'skipped'
             order by final.scheduled_for desc, final.finished_at desc
             limit 1)
            union all
            (select final.id, coalesce(final.last_scheduled_for, final.scheduled_for), final.state, final.reason,
                 final.finished_at
             from {schema}.finished_job as final
             where final.periodic_task = end_by.upstream
                 and coalesce(final.last_scheduled_for, final.scheduled_for) <= until and final.state = 'skipped'
             order by coalesce(final.last_scheduled_for, final.scheduled_for) desc, final.finished_at desc
             limit 1)
        ) as known
        order by known.occurrence desc, known.finished_at desc
        limit 1
    ) as last
    where last.state <> 'skipped' or {schema}.ends_by_skip(last.reason);
end
$$;

-- How many tasks a beat looks at to know whether something is left to do before one: to read them takes half a second.
create or replace function {schema}.most_before() returns int
language sql immutable parallel safe
as $$ select 5000 $$;

-- These periodic tasks and those before them, up to those with a schedule; if they are more than `most_before`, only so
-- many and one.
create or replace function {schema}.all_before(names text[]) returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    return array(
        with recursive before as (
            select name from unnest(names) as name
            union
            select known.upstream
            from before
            join {schema}.periodic_task as stored on stored.name = before.name
            join {schema}.dependency as known on known.downstream = before.name
            where stored.schedule is null
        )
        select name from before
        limit {schema}.most_before() + 1);
end
$$;

-- Whether each of the upstream tasks of a row without a schedule has ended since its last occurrence.
create or replace function {schema}.all_ended_since(task {schema}.periodic_task) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    since constant timestamptz := {schema}.ends_count_from(task);
    upstream text;
begin
    foreach upstream in array task.after loop
        if not exists (select from {schema}.last_ends(upstream, since, 1)) then
            return false;
        end if;
    end loop;
    return true;
end
$$;

-- From which instant on something is left to do, for each of these periodic tasks: of the task itself and, where it has
-- no schedule, of the tasks before it. 'infinity' if nothing is; '-infinity' if it is not known, or for any instant.
--
-- One task may come before thousands, by many ways. So each is looked at once: what is left to do of it alone. Then the
-- earliest instant is passed on to all that come after it, then the second earliest to what has none yet, and so on. Of
-- more than `most_before` tasks nothing is known.
create or replace function {schema}.undone_from(names text[]) returns timestamptz[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    before constant text[] := {schema}.all_before(undone_from.names);
    known_from timestamptz[];
    upstreams int[];  -- from each place in `before` to the places of what comes after it, in the order of the first
    downstreams int[];
    first_edge int[] := array_fill(null::int, array[cardinality(before)]);
    found timestamptz[] := array_fill(null::timestamptz, array[cardinality(before)]);
    to_pass_on int[];
    depth int;
    edge int;
    place int;
    one int;
begin
    if cardinality(before) > {schema}.most_before() then
        return array_fill('-infinity'::timestamptz, array[cardinality(undone_from.names)]);
    end if;
    known_from := array(
        select case
                when stored.problem is not null then '-infinity'
                when stored.schedule is not null and stored.planned_revision <> stored.revision then '-infinity'
                when stored.schedule is null and stored.next_run_at is not null then '-infinity'
                when stored.schedule is null and stored.after is not null and stored.enabled
                    and not stored.group_paused and {schema}.all_ended_since(stored)
                then '-infinity'
                else least(
                    case when stored.schedule is not null then coalesce(stored.planned_for, stored.next_run_at) end, (
                        select min(job.scheduled_for) from {schema}.active_job as job
                        where job.periodic_task = stored.name and job.origin <> 'backfill'))
            end
        from unnest(before) with ordinality as given (name, place)
        left join {schema}.periodic_task as stored on stored.name = given.name
        order by given.place);
    select array_agg(edges.upstream order by edges.upstream), array_agg(edges.downstream order by edges.upstream)
    into upstreams, downstreams
    from (
        select earlier.place as upstream, later.place as downstream
        from unnest(before) with ordinality as later (name, place)
        join {schema}.periodic_task as stored on stored.name = later.name
        join {schema}.dependency as known on known.downstream = later.name
        join unnest(before) with ordinality as earlier (name, place) on earlier.name = known.upstream
        where stored.schedule is null
    ) as edges;
    for edge in reverse coalesce(cardinality(upstreams), 0)..1 loop
        first_edge[upstreams[edge]] := edge;
    end loop;
    for one in
        select known.place from unnest(known_from) with ordinality as known (instant, place)
        where known.instant is not null
        order by known.instant
    loop
        continue when found[one] is not null;
        found[one] := known_from[one];
        to_pass_on := array[one];
        depth := 1;
        while depth > 0 loop
            place := to_pass_on[depth];
            depth := depth - 1;
            edge := first_edge[place];
            while upstreams[edge] = place loop
                if found[downstreams[edge]] is null then
                    found[downstreams[edge]] := known_from[one];
                    depth := depth + 1;
                    to_pass_on[depth] := downstreams[edge];
                end if;
                edge := edge + 1;
            end loop;
        end loop;
    end loop;
    return array(
        select coalesce(found[known.place], 'infinity')
        from unnest(undone_from.names) with ordinality as given (name, number)
        join unnest(before) with ordinality as known (name, place) on known.name = given.name
        order by given.number);
end
$$;

-- Whether an end lets its downstream tasks go on: any does under `finish`; under `success` it must have succeeded, or a
-- job that a person started later, by trigger() or retry_job(), must have.
create or replace function {schema}.lets_go_on(
    after_condition text, upstream text, occurrence timestamptz, state text
) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
begin
    return after_condition = 'finish' or lets_go_on.state = 'succeeded' or exists (
        select from {schema}.finished_job as final
        where final.periodic_task = lets_go_on.upstream and final.scheduled_for >= lets_go_on.occurrence
            and final.state <> 'skipped' and final.state = 'succeeded' and final.origin = 'manual'
            and final.created_at >= lets_go_on.occurrence - interval '1 day');
end
$$;

-- Whether each of the upstream tasks has ended for an occurrence, and which end keeps this occurrence from running. The
-- names that have not ended are in `missing`. An upstream task has ended if it has for the same occurrence or a later
-- one. If it has none at this instant, its latest earlier one counts, once nothing up to this instant is left to do.
create or replace function {schema}.ends_for(after text[], after_condition text, occurrence timestamptz)
returns table (missing text[], blocked_by uuid)
language plpgsql stable rows 1
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    undone timestamptz[];
    place int;
    ended record;
begin
    missing := '{}';
    for place in 1..coalesce(cardinality(after), 0) loop
        select * into ended from {schema}.first_end(after[place], occurrence);
        if not found then
            undone := coalesce(undone, {schema}.undone_from(after));
            if undone[place] > occurrence then
                select * into ended from {schema}.end_by(after[place], occurrence);
            end if;
        end if;
        if ended.id is null then
            missing := missing || after[place];
        elsif blocked_by is null
            and not {schema}.lets_go_on(after_condition, after[place], ended.occurrence, ended.state)
        then
            blocked_by := ended.id;
        end if;
    end loop;
    return next;
end
$$;

-- Which upstream tasks of a row without a schedule have not ended for an occurrence later than the last one that was
-- decided.
create or replace function {schema}.not_ended_since(task {schema}.periodic_task) returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return array(
        select upstream from unnest(task.after) with ordinality as given (upstream, place)
        where not exists (
            select from {schema}.last_ends(upstream, {schema}.ends_count_from(task), 1))
        order by place);
end
$$;

-- The occurrence after which ends count for a row without a schedule.
create or replace function {schema}.ends_count_from(task {schema}.periodic_task) returns timestamptz
language sql immutable parallel safe
as $$ select greatest(task.last_run_at, task.planned_from, task.start_at - interval '1 microsecond') $$;
