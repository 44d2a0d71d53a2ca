-- What a write to a periodic task causes, by a statement of ours or by any other.

-- The named windows that a list of windows refers to, NULL where it refers to none.
create or replace function {schema}.windows_used_by(blackout text[]) returns text[]
language sql immutable
as $$
    select array_agg(distinct name)
    from unnest(blackout) as element
    cross join unnest({schema}.windows_in(element)) as part
    cross join lateral {schema}.window_referred_to(part) as name
    where name <> ''
$$;

-- The instant after which occurrences count when code has changed the times of a row: its last run, as in Celery's
-- beat.
--
-- That is when the last run was decided, not only the occurrence it was for: after a run that was sent late there is no
-- second one on the same day. A row that has not run counts from its definition; occurrences before that, before an
-- author's edit and while it was paused are never caught up.
create or replace function {schema}.last_run_before_change(stored {schema}.periodic_task) returns timestamptz
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select greatest(
        coalesce(stored.judged_from, stored.planned_from),
        stored.last_run_at,
        (select max(created_at) from {schema}.active_job
         where periodic_task = stored.name and origin in ('schedule', 'catchup')),
        (select created_at from {schema}.finished_job
         where periodic_task = stored.name and origin in ('schedule', 'catchup')
         order by created_at desc limit 1))
$$;

-- The row trigger of periodic_task. It validates the row, takes the mark off (so that a submit that was under way
-- changes nothing) and what was planned ahead, and decides what has to be planned again. It runs for every write of a
-- column that it watches, also by a beat (update_declared, pause_failing, resume_due and more), with these exceptions:
--   submit                        moves last_run_at and takes its mark off
--   postpone                      moves next_run_at and takes its mark off
--   a mark that submits at once   moves last_run_at to planned_for, and that on
--   plan, replan()                move planned_revision
--   count_from                    moves planned_revision, for an import
-- So the WHEN clause of the trigger recognises the exceptions. It is false for them, and Postgres calls nothing.
-- settle_downstream moves planned_for, or last_run_at alone: such a write is no change of an author.
--
-- Beats never decide an occurrence twice; a person may have them do so. If the clock was ahead for a while, a row is
-- decided up to an instant in the future. Then a resume, a change of the times and a next_run_at that SQL sets start
-- again from now. A statement that waited for the row's lock has a `now` from before the wait: a submit that decided an
-- occurrence meanwhile is not ahead of the clock.
create or replace function {schema}.periodic_task_written() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
set intervalstyle = 'postgres'
as $$
declare
    now constant timestamptz := {schema}.now();
    present constant timestamptz := now + (clock_timestamp() - statement_timestamp());
    ahead boolean;
    times_changed boolean;
    windows_changed boolean;
    definition_changed boolean;
    run_set boolean;
    run_cleared boolean;
    judged_from timestamptz;
    counts_from timestamptz := now;
    blocking uuid;
begin
    if new.after is not null then
        new.after := {schema}.each_name_once(new.after);
    end if;
    if tg_op = 'INSERT' then
        perform {schema}.validate_state(new, null);
        perform {schema}.validate_periodic_task(new);
        new.revision := 1;
        new.planned_revision := case when new.schedule is null or new.next_run_at is not null then 1 else 0 end;
        new.schedule_set_at := now;
        new.planned_from := now;
        new.judged_from := null;
        new.failures_from := now;
        new.planned_for := null;
        new.planned_ahead := null;
        new.due_ahead := null;
        new.declared_timezone := new.timezone;
        if new.blackout is not null then
            new.windows_used := {schema}.windows_used_by(new.blackout);
        end if;
        new.group_paused := {schema}.is_paused(new.group_name);
        new.marked_by := null;
        new.marked_at := null;
        new.taken_over := false;
        new.problem := null;
        perform pg_notify({channel}, '');
        return new;
    end if;

    perform {schema}.validate_state(new, old);
    times_changed := ({new.times})
        is distinct from
        ({old.times});
    windows_changed := new.windows_revision <> old.windows_revision and not times_changed;
    definition_changed := times_changed or windows_changed
        or ({new.job_settings})
        is distinct from
        ({old.job_settings});
    ahead := greatest(old.last_run_at, old.planned_from) > present;
    -- A beat that sets the next run writes the occurrence too, which an author cannot.
    run_set := new.next_run_at is distinct from old.next_run_at and new.next_run_at is not null
        and new.planned_for is not distinct from old.planned_for;
    -- Beats, for which the trigger does not run, end a row by that. A person wants it planned from now.
    run_cleared := new.next_run_at is null and old.next_run_at is not null;

    -- Only `update_declared` writes `declared` together with a definition: code has changed it. A row that was
    -- finished, or could not be planned, has nothing to catch up.
    if times_changed and new.declared is distinct from old.declared and old.problem is null
        and (old.next_run_at is not null or old.planned_revision <> old.revision)
    then
        judged_from := least({schema}.last_run_before_change(old), now);
    end if;

    if new.group_name is distinct from old.group_name or new.group_name is null then
        new.group_paused := {schema}.is_paused(new.group_name);
    end if;

    if not (definition_changed or run_set or run_cleared
            or new.enabled <> old.enabled or new.group_paused <> old.group_paused)
    then
        if new is distinct from old
            and (new.last_run_at, new.planned_for) is not distinct from (old.last_run_at, old.planned_for)
        then
            new.updated_at := now;
        end if;
        return new;
    end if;

    if new.name <> old.name then
        select id into blocking from {schema}.active_job where periodic_task = old.name limit 1;
        if found then
            raise exception 'job % of % is not final', blocking, quote_literal(old.name)
                using errcode = '55006',
                hint = 'Rename the periodic task when the job is final: a job knows its row by the name.';
        end if;
    end if;

    if definition_changed then
        perform {schema}.validate_periodic_task(new);
        new.revision := old.revision + 1;
        if old.planned_revision = old.revision then
            new.planned_revision := new.revision;
        end if;
        -- After every change of its definition a beat tries again to plan a row that could not be planned.
        times_changed := times_changed or old.problem is not null;
        new.problem := null;
    end if;
    times_changed := times_changed or run_cleared;

    if new.schedule is distinct from old.schedule then
        -- An interval that code has changed counts from the last run. Counted from now, an interval that each start of
        -- a beat draws at random would never run.
        new.schedule_set_at := coalesce(judged_from, now);
    end if;
    if new.blackout is distinct from old.blackout then
        new.windows_used := {schema}.windows_used_by(new.blackout);
    end if;
    if new.timezone is distinct from old.timezone then
        new.declared_timezone := new.timezone;
    end if;

    if new.enabled and not old.enabled or new.name <> old.name
        or old.pause_after_failures is null and new.pause_after_failures is not null
    then
        -- Earlier failures no longer count. Each new count has an instant of its own, even if the clock was set back.
        new.failures_from := greatest(now, old.failures_from + interval '1 microsecond');
    end if;

    if new.enabled and not old.enabled then
        new.pause_reason := null;
        new.paused_by := null;
        new.paused_until := null;
        if not times_changed and not old.group_paused and old.paused_until <= now then
            -- The pause ended at its time, not when a beat saw it: an occurrence at that very instant counts.
            counts_from := least(greatest(old.paused_until - interval '1 microsecond', old.updated_at), now);
        end if;
    elsif old.enabled and not new.enabled then
        new.paused_by := coalesce(new.paused_by, {schema}.acting_person());
    end if;
    if new.enabled and not new.group_paused and (not old.enabled or old.group_paused) then
        -- Occurrences while paused are never caught up, nor is a run that was not planned yet when the pause began.
        times_changed := times_changed or ahead
            or coalesce(new.next_run_at <= now, new.planned_revision <> new.revision);
    end if;

    if not ahead then
        -- An occurrence that is decided is not planned again.
        counts_from := greatest(counts_from, old.last_run_at);
    elsif run_set or times_changed then
        if new.last_run_at > now then
            new.last_run_at := now;
        end if;
        if new.schedule_set_at > now then
            new.schedule_set_at := now;
        end if;
        counts_from := now;
        new.planned_from := now;
        -- Each such start has an instant of its own, even if the clock was set back: the ids of jobs are made from it.
        new.decided_anew_at := greatest(
            now, coalesce(old.decided_anew_at, old.created_at) + interval '1 microsecond');
    end if;

    if run_set then
        new.planned_for := null;
        new.judged_from := null;
        new.planned_revision := new.revision;
    elsif times_changed then
        -- Undecided occurrences of the old schedule are discarded; occurrences count from now, or, if code has changed
        -- the times, the newest one since the last run counts too.
        new.next_run_at := null;
        new.planned_for := null;
        new.planned_from := counts_from;
        new.judged_from := judged_from;
        new.planned_revision := case when new.schedule is null then new.revision else 0 end;
    elsif windows_changed and new.next_run_at is not null then
        -- An occurrence that the old windows deferred is not lost: it is planned first, by the new windows.
        new.planned_for := coalesce(new.planned_for, new.next_run_at);
        new.next_run_at := null;
        new.planned_revision := 0;
    end if;

    if new.after is not null and new.schedule is null
        and (new.after is distinct from old.after or old.group_paused or not old.enabled)
    then
        -- What had ended by then does not count.
        new.planned_from := greatest(new.planned_from, least(counts_from, now));
    end if;

    new.planned_ahead := null;
    new.due_ahead := null;
    new.marked_by := null;
    new.marked_at := null;
    new.taken_over := false;
    new.updated_at := now;
    perform pg_notify({channel}, '');
    return new;
end
$$;

drop trigger if exists periodic_task_inserted on {schema}.periodic_task;
create trigger periodic_task_inserted
    before insert on {schema}.periodic_task
    for each row execute function {schema}.periodic_task_written();

drop trigger if exists periodic_task_updated on {schema}.periodic_task;
create trigger periodic_task_updated
    before update of
        {written}
    on {schema}.periodic_task
    for each row
    when (old.planned_revision = new.planned_revision
          and ((old.last_run_at, old.next_run_at) is not distinct from (new.last_run_at, new.next_run_at)
              or (old.marked_by is null or new.marked_by is not null)
                  and (new.last_run_at = old.planned_for and new.planned_for is distinct from old.planned_for)
                      is not true))
    execute function {schema}.periodic_task_written();

-- Refuse a named window that is wrong, and the removal or another name of one that is in use.
create or replace function {schema}.blackout_written() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    user_name text;
begin
    if tg_op <> 'INSERT' and (tg_op = 'DELETE' or new.name <> old.name) then
        select name into user_name from {schema}.periodic_task
        where windows_used @> array[old.name] order by name limit 1;
        if found then
            raise exception using errcode = 'object_in_use',
                message = format('The blackout window %s is used by the periodic task %s.',
                                 {schema}.quoted(old.name), {schema}.quoted(user_name)),
                hint = format('Take %s out of its column blackout first, or set windows to an empty array.',
                              {schema}.quoted('window: ' || old.name));
        end if;
    end if;
    if tg_op = 'DELETE' then
        return old;
    end if;
    perform {schema}.validate_blackout(new);
    return new;
end
$$;

drop trigger if exists blackout_written on {schema}.blackout;
create trigger blackout_written
    before insert or update or delete on {schema}.blackout
    for each row execute function {schema}.blackout_written();

-- Have the rows planned again that use a named window that has changed; in name order, as every statement that writes
-- to many rows. It acts for the owner: no author may write the column windows_revision.
create or replace function {schema}.replan_users_of_window() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'UPDATE' and new is not distinct from old then
        return null;
    end if;
    perform from {schema}.periodic_task where windows_used @> array[new.name] order by name for no key update;
    update {schema}.periodic_task set windows_revision = windows_revision % 1000000000 + 1
    where windows_used @> array[new.name];
    return null;
end
$$;

revoke execute on function {schema}.replan_users_of_window() from public;

drop trigger if exists blackout_changed on {schema}.blackout;
create trigger blackout_changed
    after insert or update on {schema}.blackout
    for each row execute function {schema}.replan_users_of_window();
