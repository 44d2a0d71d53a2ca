-- Putting a definition back; see internal/revert.sql.

-- Put the definition of a periodic task back to what it was at a revision, or before a change; returns the row. It is
-- checked as any other definition, and is a change itself. A removed row is made again, with its pause; that of a row
-- that is there stays as it is, and so do its next run and its jobs. A sensitive row stays sensitive. If nothing
-- differs, nothing is written.
create or replace function {schema}.revert(name text, revision int default null, change bigint default null)
returns {schema}.periodic_task
language plpgsql
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set intervalstyle = 'postgres'
as $$
#variable_conflict use_column
declare
    target record;
    unknown text[];  -- the arguments of then that are not recorded
    wanted {schema}.periodic_task;
    stored {schema}.periodic_task;
    written {schema}.periodic_task;
    given_reason constant text := current_setting('pgbeat.reason', true);
    word constant text := case
        when revert.change is null then format('reverted to revision %s', revert.revision)
        else format('reverted to what it was before change %s', revert.change)
    end;
begin
    loop
        select * into stored from {schema}.periodic_task as task where task.name = revert.name for no key update;
        select * into target
        from {schema}.definition_before(revert.name, revert.revision, revert.change);
        unknown := array_remove(target.hidden, 'sensitive');
        wanted := jsonb_populate_record(stored, target.definition || (
            select coalesce(jsonb_object_agg(key, make_interval(secs => value::float8)), '{}')
            from jsonb_each_text(target.definition)
            where value is not null and key in ({duration_columns})));
        perform set_config('pgbeat.reason', left(word || coalesce(': ' || nullif(given_reason, ''), ''), 1000), true);
        if stored.name is not null then
            update {schema}.periodic_task as task
            set name = wanted.name, timezone = wanted.timezone, managed_by = wanted.managed_by,
                {definition = wanted}
            where task.name = revert.name
                and (task.name, task.timezone, task.managed_by, {task.definition})
                    is distinct from (wanted.name, wanted.timezone, wanted.managed_by, {wanted.definition})
            returning task.* into written;
            if found then
                stored := written;
            end if;
        else
            if unknown <> '{}' then
                perform {schema}.refuse_revert(format(
                    '%s cannot be made again: it was sensitive, so its %s are not recorded',
                    {schema}.quoted(revert.name), array_to_string(unknown, ' and ')),
                    'Define it again with schedule().');
            end if;
            insert into {schema}.periodic_task (
                name, timezone, managed_by, {definition}, enabled, pause_reason, paused_by, paused_until)
            values (
                wanted.name, wanted.timezone, wanted.managed_by, {wanted.definition}, wanted.enabled,
                wanted.pause_reason, wanted.paused_by, wanted.paused_until)
            on conflict do nothing
            returning * into stored;
        end if;
        perform set_config('pgbeat.reason', coalesce(given_reason, ''), true);
        exit when stored.name is not null;
        if wanted.name <> revert.name then
            perform {schema}.refuse_revert(format('%s was named %s then, and another periodic task has that name now',
                {schema}.quoted(revert.name), {schema}.quoted(wanted.name)), 'Rename or remove that one first.');
        end if;
        -- Another transaction has made the row meanwhile: start again from that one.
    end loop;
    if stored.name = revert.name and unknown <> '{}' then
        raise notice '% keeps its present %: those of a sensitive row are not recorded', {schema}.quoted(stored.name),
            array_to_string(unknown, ' and ');
    end if;
    if 'sensitive' = any (target.hidden) then
        raise notice '% stays sensitive: only UPDATE, schedule() or code can undo that', {schema}.quoted(stored.name);
    end if;
    return stored;
end
$$;
