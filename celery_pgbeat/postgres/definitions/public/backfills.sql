-- What people do with backfills.

-- Submit the occurrences of a range, both ends included, as jobs of their own; returns the backfill's id.
--
-- A beat does it after the caller's commit, also for a paused or finished row. The function acts for the owner, as
-- trigger() does: its caller needs no right to write jobs.
create or replace function {schema}.backfill(
    name text,
    since timestamptz,
    until timestamptz,
    mode text default 'missing',
    max_active int default 1
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    definition {schema}.periodic_task;
    made uuid;
    wrong text;
    way_out text := '';
begin
    select * into definition from {schema}.periodic_task as stored where stored.name = backfill.name;
    if not found then
        perform {schema}.refuse_unknown(backfill.name);
    end if;
    perform {schema}.refuse_finished_group(definition.group_name);
    if definition.schedule is null then
        wrong := format('%s has no schedule, so no occurrences to be filled in', {schema}.quoted(backfill.name));
        way_out := 'trigger() starts a job of it.';
    elsif backfill.since is null or backfill.until is null then
        wrong := case when backfill.since is null then 'since' else 'until' end || ' is null';
        way_out := 'A backfill needs both ends of its range.';
    elsif backfill.since < '0001-01-02 00:00+00' or backfill.since > '9999-12-30 00:00+00' then
        wrong := 'since is ' || backfill.since || ', outside the years 1 to 9999';
    elsif backfill.since > backfill.until then
        wrong := 'since is ' || {schema}.shown(backfill.since) || ', later than until, '
            || {schema}.shown(backfill.until);
        way_out := 'Give the earlier end first.';
    elsif backfill.until > {schema}.now() then
        wrong := 'until is ' || backfill.until || ', which is still to come';
        way_out := 'What is to come is the schedule''s own: end the range at ' || {schema}.shown({schema}.now())
            || ' or before.';
    elsif {schema}.begins_where_set(definition.schedule)
        and backfill.until < coalesce(definition.anchor, definition.start_at, definition.schedule_set_at)
    then
        wrong := format(
            '%s has no occurrence up to %s', {schema}.quoted(backfill.name), {schema}.shown(backfill.until));
        way_out := 'Its schedule begins at '
            || {schema}.shown(coalesce(definition.anchor, definition.start_at, definition.schedule_set_at))
            || ', its anchor, else its start_at, else when it was set: give the row an earlier anchor.';
    elsif (backfill.mode in ('missing', 'failed', 'all')) is not true then
        wrong := 'mode is ' || coalesce({schema}.quoted(backfill.mode), 'null');
        way_out := 'It is one of missing, failed, all.';
    elsif (backfill.max_active between 1 and 1000) is not true then
        wrong := 'max_active is ' || coalesce(backfill.max_active::text, 'null');
        way_out := 'It is a number from 1 to 1000.';
    end if;
    if wrong is not null and way_out = '' then
        raise exception using errcode = 'invalid_parameter_value', message = wrong;
    elsif wrong is not null then
        raise exception using errcode = 'invalid_parameter_value', message = wrong, hint = way_out;
    end if;

    insert into {schema}.backfill (periodic_task, since, until, mode, max_active)
    values (backfill.name, backfill.since, backfill.until, backfill.mode, backfill.max_active)
    returning id into made;
    perform {schema}.record_act(
        'backfilled', backfill.name, backfill => made,
        details => jsonb_build_object(
            'since', backfill.since, 'until', backfill.until, 'mode', backfill.mode, 'max_active', backfill.max_active));
    perform pg_notify({channel}, '');
    return made;
end
$$;

-- The same for whole days of the row's zone, the last one included.
create or replace function {schema}.backfill(
    name text,
    since date,
    until date,
    mode text default 'missing',
    max_active int default 1
) returns uuid
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select {schema}.backfill(
        backfill.name,
        {schema}.day_of_range(backfill.name, 'since', backfill.since, zone),
        {schema}.day_of_range(backfill.name, 'until', backfill.until, zone),
        backfill.mode, backfill.max_active)
    from (select {schema}.zone_of(backfill.name) as zone) as of_row
$$;

-- The same for texts, which is what a literal without a type is to Postgres: '2026-05-31' is that day of the row's
-- zone, and '2026-05-31 18:00' is read on its clocks, whatever the zone of the session.
create or replace function {schema}.backfill(
    name text,
    since text,
    until text,
    mode text default 'missing',
    max_active int default 1
) returns uuid
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select {schema}.backfill(
        backfill.name,
        {schema}.end_of_range(backfill.name, 'since', backfill.since, zone),
        {schema}.end_of_range(backfill.name, 'until', backfill.until, zone),
        backfill.mode, backfill.max_active)
    from (select {schema}.zone_of(backfill.name) as zone) as of_row
$$;

-- Cancel a backfill: what it has not decided yet is dropped, the jobs that it has made still run; returns the row.
create or replace function {schema}.cancel_backfill(id uuid) returns {schema}.backfill
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    known {schema}.backfill;
begin
    update {schema}.backfill as stored
    set state = 'cancelled', finished_at = {schema}.now(), marked_by = null, marked_at = null
    where stored.id = cancel_backfill.id and stored.state = 'running'
    returning stored.* into known;
    if found then
        perform {schema}.record_act('cancelled', known.periodic_task, backfill => known.id);
        return known;
    end if;
    select * into known from {schema}.backfill as stored where stored.id = cancel_backfill.id;
    if not found then
        raise exception using errcode = 'undefined_object',
            message = format('There is no backfill %s.', coalesce(cancel_backfill.id::text, 'null'));
    end if;
    raise exception using errcode = 'object_not_in_prerequisite_state',
        message = format('The backfill %s of %s was %s at %s: there is nothing left to cancel.', known.id,
                         {schema}.quoted(known.periodic_task), known.state, {schema}.shown(known.finished_at));
end
$$;

revoke execute on function {schema}.backfill(text, timestamptz, timestamptz, text, int) from public;
revoke execute on function {schema}.backfill(text, date, date, text, int) from public;
revoke execute on function {schema}.backfill(text, text, text, text, int) from public;
revoke execute on function {schema}.cancel_backfill(uuid) from public;
