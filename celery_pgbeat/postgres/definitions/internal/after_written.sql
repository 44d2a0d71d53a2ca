-- When a row in `after` is due, and what a write to `after` or to an upstream task causes.

-- For which occurrence a row without a schedule is due: when each of its upstream tasks has ended for an occurrence
-- later than the last one that was decided. `occurrence` is null while one is `missing`, or has not come as far as the
-- others, and outside the bounds of the row.
--
-- Several rounds may be waiting, and one upstream task may be ahead of another. So it looks for the last instant from
-- which each of them has an end: the first end from then on, or the last before, if nothing up to this instant is left
-- to do. The latest of these ends is the occurrence of the row. An earlier one counts beside it only if its task has
-- nothing left to do up to that occurrence: an end that is left from another round does not satisfy a later
-- occurrence.
--
-- All ends that may count are read once. Then it goes from instant to instant of theirs, from the last one on. For each
-- upstream task it keeps the end that it has passed last, which is the first from that instant on.
create or replace function {schema}.due_after(task {schema}.periodic_task)
returns table (occurrence timestamptz, missing text[], blocked_by uuid)
language plpgsql stable rows 1
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_variable
declare
    since constant timestamptz := {schema}.ends_count_from(task);
    most_rounds constant int := 100;
    -- The ends of all upstream tasks, the last ones first; `places` says of which task, by its place in `after`.
    places int[];
    ids uuid[];
    occurrences timestamptz[];
    states text[];
    recorded timestamptz[];
    -- Of each upstream task the place of its first end from an instant on, and of its last end.
    first_of int[] := array_fill(null::int, array[cardinality(task.after)]);
    last_of int[] := array_fill(null::int, array[cardinality(task.after)]);
    used int[];
    undone timestamptz[];
    left_out timestamptz[];  -- of each task the first occurrence after its last end that was left out
    rounds int := 0;
    is_due boolean := false;
begin
    missing := {schema}.not_ended_since(task);
    if missing = '{}' and (task.run_count >= task.max_runs) is not true then
        select array_agg(one.place order by one.occurrence desc), array_agg(one.id order by one.occurrence desc),
            array_agg(one.occurrence order by one.occurrence desc), array_agg(one.state order by one.occurrence desc),
            array_agg(one.finished_at order by one.occurrence desc)
        into places, ids, occurrences, states, recorded
        from (
            select given.place, ended.*
            from unnest(task.after) with ordinality as given (name, place)
            cross join lateral {schema}.last_ends(given.name, since, most_rounds) as ended
        ) as one;
        for number in reverse cardinality(places)..1 loop
            last_of[places[number]] := number;
        end loop;
        for number in 1..cardinality(places) loop
            first_of[places[number]] := number;
            continue when occurrences[number + 1] = occurrences[number];  -- more of them end at this instant
            rounds := rounds + 1;
            exit when rounds > most_rounds;
            is_due := true;
            occurrence := null;
            used := first_of;
            for place in 1..cardinality(used) loop
                if used[place] is null then
                    if undone is null then
                        undone := {schema}.undone_from(task.after);
                    end if;
                    if left_out is null then
                        left_out := array(
                            select coalesce((
                                select coalesce(final.last_scheduled_for, final.scheduled_for)
                                from {schema}.finished_job as final
                                where final.periodic_task = given.name and final.state = 'skipped'
                                    and not {schema}.ends_by_skip(final.reason)
                                    and coalesce(final.last_scheduled_for, final.scheduled_for)
                                        >= occurrences[given.number]
                                    and (coalesce(final.last_scheduled_for, final.scheduled_for), final.finished_at)
                                        > (occurrences[given.number], recorded[given.number])
                                order by coalesce(final.last_scheduled_for, final.scheduled_for)
                                limit 1
                            ), 'infinity')
                            from unnest(task.after, last_of) with ordinality as given (name, number, at_place)
                            order by given.at_place);
                    end if;
                    used[place] := last_of[place];
                    is_due := undone[place] > occurrences[number] and left_out[place] > occurrences[number];
                    exit when not is_due;
                end if;
                occurrence := greatest(occurrence, occurrences[used[place]]);
            end loop;
            for place in 1..cardinality(used) loop
                exit when not is_due;
                if occurrences[used[place]] < occurrence then
                    if undone is null then
                        undone := {schema}.undone_from(task.after);
                    end if;
                    is_due := undone[place] > occurrence;
                end if;
            end loop;
            exit when is_due;
        end loop;
    end if;
    if not is_due or occurrence > task.end_at then
        occurrence := null;
        return next;
        return;
    end if;
    for place in 1..cardinality(used) loop
        if not {schema}.lets_go_on(
            task.after_condition, task.after[place], occurrences[used[place]], states[used[place]])
        then
            blocked_by := ids[used[place]];
            exit;
        end if;
    end loop;
    return next;
end
$$;

-- Fail if a row may not come after the tasks that it names: one is unknown, or comes after this row itself. No other
-- transaction can remove a task that it names until this one has ended.
create or replace function {schema}.validate_after(name text, after text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    unknown text;
    similar_name text;
begin
    perform {schema}.one_author('periodic_task.after');
    perform from {schema}.periodic_task as task where task.name = any (validate_after.after) for key share;
    select named into unknown from unnest(validate_after.after) with ordinality as given (named, place)
    where not exists (select from {schema}.periodic_task as task where task.name = given.named)
    order by place
    limit 1;
    if found then
        similar_name := {schema}.similar_name(unknown);
        raise exception using errcode = 'invalid_parameter_value',
            message = format('after names %s, and no periodic task is named so', {schema}.quoted(unknown))
                || coalesce('. Did you mean ' || {schema}.quoted(similar_name) || '?', ''),
            hint = 'Define the tasks that come first before the others, or all in one statement.';
    end if;
    -- Its words take long to find, so first whether there is one at all. Nothing comes after most new rows.
    if validate_after.name = any (validate_after.after)
        or exists (select from {schema}.dependency where upstream = validate_after.name)
        and exists (
            with recursive before as (
                select named as name from unnest(validate_after.after) as named
                union
                select known.upstream from before join {schema}.dependency as known on known.downstream = before.name
            )
            select from before where before.name = validate_after.name)
    then
        raise exception using errcode = 'invalid_parameter_value',
            message = 'No periodic task may wait for itself: '
                || {schema}.circle_of('periodic task', validate_after.name, validate_after.after);
    end if;
end
$$;

-- Keep the table dependency equal to the column `after`. It runs when all rows of the statement are written, so one
-- statement may define the tasks in any order. A transaction may have it run later (check_after): `import` writes
-- many statements. It acts for the owner: nothing else writes that table.
create or replace function {schema}.after_written() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    named text[];
begin
    if tg_op = 'UPDATE' and new.name <> old.name then
        perform {schema}.refuse_named_in_after(array[old.name]);
        delete from {schema}.dependency as known where known.downstream = old.name;
    end if;
    if tg_op = 'INSERT' or new.name <> old.name or new.after is distinct from old.after then
        -- As it is now: where this runs at the end of a transaction, the row may have been changed again, or be gone.
        select task.after into named from {schema}.periodic_task as task where task.name = new.name;
        delete from {schema}.dependency as known where known.downstream = new.name;
        if named is not null then
            insert into {schema}.dependency (upstream, downstream) select distinct unnest(named), new.name;
            perform {schema}.validate_after(new.name, named);
        end if;
    end if;
    insert into {schema}.dependency_to_check (downstream) values (new.name);
    return null;
end
$$;

revoke execute on function {schema}.after_written() from public;

drop trigger if exists periodic_task_defined_after on {schema}.periodic_task;
create constraint trigger periodic_task_defined_after
    after insert on {schema}.periodic_task
    deferrable initially immediate
    for each row when (new.after is not null)
    execute function {schema}.after_written();

drop trigger if exists periodic_task_after_changed on {schema}.periodic_task;
create constraint trigger periodic_task_after_changed
    after update of name, after, after_condition, schedule on {schema}.periodic_task
    deferrable initially immediate
    for each row when (
        (old.after is not null or new.after is not null)
            and (old.name, old.after, old.after_condition, old.schedule)
                is distinct from (new.name, new.after, new.after_condition, new.schedule)
        or old.name <> new.name)
    execute function {schema}.after_written();

-- A row without a schedule has been decided, is not due any more, or is not paused any more: its upstream tasks may
-- have ended again meanwhile.
create or replace function {schema}.decided_after() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into {schema}.dependency_to_check (downstream) values (new.name);
    return null;
end
$$;

revoke execute on function {schema}.decided_after() from public;

drop trigger if exists periodic_task_decided_after on {schema}.periodic_task;
create trigger periodic_task_decided_after
    after update of next_run_at, enabled, group_paused on {schema}.periodic_task
    for each row when (
        new.after is not null and new.schedule is null and new.next_run_at is null
            and (old.next_run_at is not null or not old.enabled or old.group_paused))
    execute function {schema}.decided_after();

-- A row has been planned again, or an author has set its next run: nothing may be left to do of it now up to an instant
-- for which others wait. A submit, which every tick writes, moves last_run_at too: it writes a row itself where it
-- skips an occurrence, or its job does when it ends.
create or replace function {schema}.planned_again() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    insert into {schema}.dependency_to_check (upstream)
    select new.name where exists (select from {schema}.dependency where upstream = new.name);
    return null;
end
$$;

revoke execute on function {schema}.planned_again() from public;

drop trigger if exists periodic_task_planned_again on {schema}.periodic_task;
create trigger periodic_task_planned_again
    after update of planned_revision, next_run_at on {schema}.periodic_task
    for each row when (
        old.planned_revision <> new.planned_revision
        or old.last_run_at is not distinct from new.last_run_at and old.next_run_at is distinct from new.next_run_at)
    execute function {schema}.planned_again();

-- Fail if a row that stays comes after one of these.
create or replace function {schema}.refuse_named_in_after(names text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    found_one record;
begin
    select upstream, downstream into found_one from {schema}.dependency
    where upstream = any (names) and downstream <> all (names)
    order by upstream, downstream
    limit 1;
    if found then
        raise exception using errcode = 'object_in_use', table = 'dependency',
            message = format('The periodic task %1$s runs after %2$s: take %2$s out of its column after first, or '
                                 'remove both in one statement.',
                             {schema}.quoted(found_one.downstream), {schema}.quoted(found_one.upstream));
    end if;
end
$$;

-- Take removed tasks out of the table dependency, unless another task names one: that one stays. No row waits any more
-- for what the removed tasks named.
create or replace function {schema}.after_removed() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    names constant text[] := array(select name from deleted);
begin
    if exists (select from {schema}.dependency) then
        perform {schema}.refuse_named_in_after(names);
        with gone as (
            delete from {schema}.dependency where downstream = any (names) returning downstream
        )
        insert into {schema}.dependency_to_check (downstream) select distinct downstream from gone;
    end if;
    return null;
end
$$;

revoke execute on function {schema}.after_removed() from public;

drop trigger if exists periodic_task_removed on {schema}.periodic_task;
create trigger periodic_task_removed
    after delete on {schema}.periodic_task
    referencing old table as deleted
    for each statement execute function {schema}.after_removed();
