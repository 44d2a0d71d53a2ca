-- Putting a definition back: it is found by undoing the recorded changes of a row, from the newest one on.

-- Fail: the changes do not go back so far.
create or replace function {schema}.refuse_revert(message text, hint text default null) returns void
language plpgsql
as $$
begin
    raise exception using errcode = 'invalid_parameter_value', message = refuse_revert.message,
        hint = coalesce(refuse_revert.hint, 'The table change has what is known; beats keep it for '
            'pgbeat_keep_changes.');
end
$$;

-- The definition that a periodic task had at a revision, or before a change, as a JSON object; with the pause that a
-- removed row had. `hidden` has the arguments that are not known, because the row was sensitive; and `sensitive`, if it
-- was not so then. It stays so: to put that back would show arguments that are hidden now.
--
-- What was recorded under an earlier name, and before a removal, counts too. The changes of a row are in the order of
-- their ids, because each holds the row's lock. Revisions begin anew when a row is made anew: one that is asked for is
-- that of the present row, or of the last one of this name.
create or replace function {schema}.definition_before(
    name text, revision int default null, change bigint default null, out definition jsonb, out hidden text[]
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    named text := definition_before.name;
    stored {schema}.periodic_task;
    entry {schema}.change;
    last bigint := 9223372036854775807;
    lowest int;  -- the lowest revision that is known so far
    reached boolean := false;
    is_sensitive boolean;  -- the row, or the one that was removed last
begin
    if (definition_before.revision is null) = (definition_before.change is null) then
        perform {schema}.refuse_revert('revert() needs a revision or a change, and not both',
            'Read the table change: each entry has an id, and the revision that it made.');
    end if;
    hidden := '{}';
    select * into stored from {schema}.periodic_task as task where task.name = named;
    if found then
        definition := {schema}.as_recorded(stored) || {schema}.arguments_as_recorded(stored, false);
        lowest := stored.revision;
        is_sensitive := stored.sensitive;
        if stored.revision < definition_before.revision then
            perform {schema}.refuse_revert(format('%s has no revision %s: it is at %s', {schema}.quoted(named),
                definition_before.revision, stored.revision));
        end if;
    end if;
    loop
        select * into entry
        from {schema}.change as known
        where known.name = named and known.id < last and known.kind = 'periodic_task'
            and known.action in ('created', 'changed', 'renamed', 'removed', 'paused', 'resumed')
        order by known.id desc
        limit 1;
        if definition is null and (not found or entry.action <> 'removed') then
            -- Without an entry of its own: nothing of this name was ever recorded, or it has another name now.
            perform {schema}.refuse_revert_of_unknown(named, last);
        end if;
        exit when not found;
        if definition_before.change is not null then
            exit when entry.id < definition_before.change;
        else
            exit when definition is not null
                and (entry.revision <= definition_before.revision or entry.action in ('created', 'removed'));
        end if;
        last := entry.id;
        reached := reached or entry.id = definition_before.change;
        if entry.action = 'created' then
            definition := null;
            exit when reached;
        elsif entry.action = 'removed' then
            definition := '{defaults}'::jsonb || coalesce(entry.before, '{}');
            lowest := entry.revision;
            is_sensitive := coalesce(is_sensitive, (definition ->> 'sensitive')::boolean);
            if entry.revision < definition_before.revision then
                perform {schema}.refuse_revert(format('%s had no revision %s: it was at %s when it was removed',
                    {schema}.quoted(named), definition_before.revision, entry.revision));
            end if;
        else
            definition := definition || coalesce(entry.before, '{}');
            -- A change of a text without effect, or of the pause, makes no revision.
            lowest := entry.revision - case
                when entry.columns <@ array[{recorded_without_effect_as_texts}] then 0
                else 1
            end;
            named := coalesce(entry.before ->> 'name', named);
        end if;
        definition := definition || coalesce(
            (select jsonb_object_agg(key, value) from jsonb_each(entry.arguments_before)
             where value <> '"<sensitive>"'),
            '{}');
        hidden := array(
            select key from unnest(hidden) as key
            where not coalesce(entry.arguments_before ? key, false)
            union
            select key from jsonb_each(entry.arguments_before) where value = '"<sensitive>"'
            order by 1);
    end loop;
    if definition_before.change is not null and not reached then
        perform {schema}.refuse_revert(format('%s has no change %s of its definition',
            {schema}.quoted(definition_before.name), definition_before.change));
    elsif definition is null then
        perform {schema}.refuse_revert(format('%s did not exist before change %s',
            {schema}.quoted(definition_before.name), definition_before.change), 'unschedule() removes it.');
    elsif lowest > definition_before.revision and (entry.id is null or entry.revision > definition_before.revision) then
        perform {schema}.refuse_revert(format('what %s was at revision %s is not known: its changes go back to '
            'revision %s', {schema}.quoted(definition_before.name), definition_before.revision, lowest));
    end if;
    if is_sensitive and not (definition ->> 'sensitive')::boolean then
        definition := definition || '{"sensitive": true}';
        hidden := hidden || 'sensitive'::text;
    end if;
end
$$;

-- Fail: no periodic task has this name, and none that had it was removed.
create or replace function {schema}.refuse_revert_of_unknown(name text, last bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    other text;
begin
    select known.name into other
    from {schema}.change as known
    where known.action = 'renamed' and known.before ->> 'name' = refuse_revert_of_unknown.name
        and known.kind = 'periodic_task'
    order by known.id desc
    limit 1;
    if found and not exists (
        select from {schema}.periodic_task as task where task.name = refuse_revert_of_unknown.name)
    then
        raise exception using errcode = 'no_data_found',
            message = format('No periodic task is named %s: it was renamed to %s', {schema}.quoted(name),
                             {schema}.quoted(other));
    elsif last < 9223372036854775807 then
        perform {schema}.refuse_revert(format('%s did not exist before change %s', {schema}.quoted(name), last),
            'unschedule() removes it.');
    end if;
    perform {schema}.refuse_unknown(name);
end
$$;
