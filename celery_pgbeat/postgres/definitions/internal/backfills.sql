-- Backfills: what they begin with, and what decides whether one may go on.

-- The first occurrence that beats still decide as an ordinary run, with all later ones; NULL if there is none.
--
-- For a paused row that is what a resume would leave to them, by the rules of the row trigger (row_trigger.sql): a run
-- that is still to come (its occurrence may be long past, moved by a blackout window), and what came after the end of a
-- pause that is over.
create or replace function {schema}.undecided_from(task {schema}.periodic_task) returns timestamptz
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select case
        when task.schedule is null or task.problem is not null then null
        when task.next_run_at > {schema}.now() then coalesce(task.planned_for, task.next_run_at)
        when task.next_run_at is null and task.planned_revision = task.revision or task.group_paused then null
        when not task.enabled
        then case
            when task.paused_until <= {schema}.now()
            then greatest(task.paused_until, task.updated_at + interval '1 microsecond')
        end
        when task.next_run_at is not null then coalesce(task.planned_for, task.next_run_at)
        else coalesce(task.planned_for, least(task.planned_from, task.judged_from) + interval '1 microsecond')
    end
$$;

-- How many jobs a backfill may submit now. Unless `overlap` is `allow`, it starts nothing beside a job that is not its
-- own. A backfill whose row was removed or has no schedule has room, so that a beat marks it and ends it.
create or replace function {schema}.room_of(backfill {schema}.backfill) returns int
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select case
        when stored.schedule is null then 1
        when {schema}.undecided_from(stored) <= backfill.next_at then 0
        when stored.overlap <> 'allow' and exists (
            select from {schema}.active_job as other
            where other.periodic_task = backfill.periodic_task and other.backfill is distinct from backfill.id) then 0
        else greatest(backfill.max_active - (
            select count(*) from {schema}.active_job as own where own.backfill = backfill.id), 0)::int
    end
    from (select) as one
    left join {schema}.periodic_task as stored on stored.name = backfill.periodic_task
$$;

-- The running backfills that a beat may mark: no beat has marked them, and they have room, or are to be ended.
--
-- The rules are those of room_of(), which it does not call: there may be thousands of backfills at once, and each look
-- would take a second. It must be inlined, so it sets nothing. Each row is looked up by itself (`limit`), because a
-- plan that is kept must not read all periodic tasks for one backfill.
create or replace function {schema}.backfills_with_room(lazy_names text[]) returns setof uuid
language sql stable rows 10
as $$
    select filling.id
    from {schema}.backfill as filling
    left join lateral (
        select known.schedule, known.overlap, known.lazy and known.name <> all (lazy_names) as is_left_to_others,
            {schema}.undecided_from(known) as undecided_from
        from {schema}.periodic_task as known
        where known.name = filling.periodic_task
        limit 1
    ) as task on true
    where filling.state = 'running'
        and not {schema}.is_marked(filling.marked_at, filling.mark_lease)
        and task.is_left_to_others is not true
        and case
            when task.schedule is null then true
            when task.undecided_from <= filling.next_at then false
            when task.overlap <> 'allow' and exists (
                select from {schema}.active_job as other
                where other.periodic_task = filling.periodic_task and other.backfill is distinct from filling.id)
            then false
            else filling.max_active > (
                select count(*) from {schema}.active_job as own where own.backfill = filling.id)
        end
$$;

-- Whether a backfill of one of these periodic tasks runs. It acts for the owner: a role that ends jobs need not have
-- the right to read backfills.
create or replace function {schema}.is_backfilled(names text[]) returns boolean
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (select from {schema}.backfill where state = 'running' and periodic_task = any (names));
end
$$;

-- The instant at which the clocks of a zone first show a local time, as Python has it. If the clocks are set back and
-- show the time twice, that is the first of the two (Postgres takes the second). If they are set forward and never show
-- it, that is as far after the change as the time is after the first one that is left out.
create or replace function {schema}.instant_of(reading timestamp, zone text) returns timestamptz
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select case
        when not isfinite(reading) then reading at time zone zone
        when earlier at time zone zone = reading then least(earlier, later)
        else later
    end
    from (select reading at time zone zone as later) as one
    cross join lateral (select later - interval '1 day' as before) as two
    cross join lateral (
        select (reading - ((before at time zone zone) - (before at time zone 'UTC'))) at time zone 'UTC' as earlier
        where isfinite(reading)
    ) as three
$$;

-- The zone that the text of a schedule names itself, such as CRON_TZ=Asia/Tokyo; NULL if it names none.
create or replace function {schema}.own_zone(schedule text) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    body text := {schema}.unpadded(schedule);
    kind text := {schema}.prefix_of(schedule);
    word text;
begin
    if kind = any ({schema}.schedule_prefixes()) then
        body := {schema}.unpadded(substr(body, strpos(body, ':') + 1));
    else
        kind := {schema}.kind_of(body);
    end if;
    if kind in ('cron', 'crontab') then
        return substring(body from '^(?:CRON_)?TZ=(\S+)');
    elsif kind = 'rrule' then
        return coalesce(
            substring(body from '(?i)dtstart(?:;[^:;]*)*;tzid=([^:;]+)'),
            case when body ~* 'dtstart[^:]*:[0-9]{8}t[0-9]{6}z' then 'UTC' end);
    elsif kind = 'calendar' then
        word := substring(body from '\S+$');
        if word ~ '^@[0-9]' then
            return 'UTC';
        elsif word <> body and word ~ '^[A-Za-z][A-Za-z0-9_+/-]*$'
            and lower(left(word, 3) collate "C") not in ('mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun')
        then
            return word;
        end if;
    end if;
    return null;
end
$$;

-- Whether a schedule without an anchor begins when it was set: an interval, or an ISO 8601 schedule without a start.
create or replace function {schema}.begins_where_set(schedule text) returns boolean
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select {schema}.unpadded(schedule) ~* '^((every|iso)\s*:\s*)?(@?every\s|(r[0-9]*/)?p)'
        or {schema}.unpadded(schedule) ~* '^every\s*:'
$$;

-- The zone in whose days a periodic task runs: that in the text of its schedule, else its own, which a beat fills in.
create or replace function {schema}.zone_of(name text) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    definition record;
begin
    select schedule, timezone into definition from {schema}.periodic_task as stored where stored.name = zone_of.name;
    if not found then
        perform {schema}.refuse_unknown(zone_of.name);
    elsif definition.schedule is null then
        return 'UTC';  -- no occurrence depends on it
    end if;
    return coalesce({schema}.own_zone(definition.schedule), definition.timezone);
end
$$;

-- Raise the error that an end of a range needs the zone of its periodic task, which is not known yet.
create or replace function {schema}.refuse_without_zone(name text, field text, given text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using errcode = 'invalid_parameter_value',
        message = format('%s is %s, without an offset, and %s has no timezone yet',
                         field, {schema}.quoted(given), {schema}.quoted(name)),
        hint = 'Give it an offset, or set the timezone of the row; the first beat that plans it writes its app''s '
            'there.';
end
$$;

-- An end of a range, given as a day of the row's zone: its first instant, or its last one, of today the present one.
create or replace function {schema}.day_of_range(name text, field text, day date, zone text) returns timestamptz
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    begins timestamptz;
begin
    if day is null then
        return null;
    elsif zone is null then
        perform {schema}.refuse_without_zone(name, field, day::text);
    end if;
    begins := {schema}.instant_of(day::timestamp, zone);
    if field = 'since' or not isfinite(day) then
        return begins;
    end if;
    return case
        when begins <= {schema}.now() then
            least({schema}.instant_of((day + 1)::timestamp, zone) - interval '1 microsecond', {schema}.now())
        else begins
    end;
end
$$;

-- An end of a range, given as a text: a day (2026-05-31, today, yesterday), or a time as Postgres reads it, in the
-- row's zone unless it has an offset.
create or replace function {schema}.end_of_range(name text, field text, given text, zone text) returns timestamptz
language plpgsql
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'  -- the caller's comes back at the end
as $$
declare
    word constant text := lower(btrim(given));
    back constant int := case word when 'today' then 0 when 'yesterday' then 1 end;
    instant timestamptz;
begin
    if word = 'now' then
        return {schema}.now();
    elsif back is not null and zone is null then
        perform {schema}.refuse_without_zone(name, field, given);
    elsif back is not null then
        return {schema}.day_of_range(name, field, ({schema}.now() at time zone zone)::date - back, zone);
    elsif word ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$' then
        return {schema}.day_of_range(name, field, word::date, zone);
    end if;
    instant := given::timestamptz;
    perform set_config('timezone', 'Asia/Kathmandu', true);
    if instant is not distinct from given::timestamptz then  -- it has an offset
        return instant;
    elsif zone is null then
        perform {schema}.refuse_without_zone(name, field, given);
    end if;
    return {schema}.instant_of(given::timestamp, zone);
exception
    when invalid_datetime_format or datetime_field_overflow or invalid_time_zone_displacement_value then
        raise exception using errcode = 'invalid_parameter_value',
            message = format('%s is %s, neither a date nor a date-time', field, {schema}.quoted(given)),
            hint = 'Write it such as 2026-05-31, or 2026-05-31T18:00:00Z.';
end
$$;
