-- Whose arguments in a change may be shown, and how long changes are kept.

-- Whether the row that a change was about is sensitive now, or was so when it was removed.
--
-- A renamed row is found by its present name. A row that was made anew after the change is another one: that of the
-- change was removed before.
create or replace function {schema}.is_sensitive_since(id bigint, name text, at timestamptz) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    named text := is_sensitive_since.name;
    last bigint := is_sensitive_since.id;
    renamed record;
    row_now record;
begin
    loop
        select task.sensitive, task.created_at into row_now
        from {schema}.periodic_task as task where task.name = named;
        if row_now.sensitive then
            return true;
        end if;
        select known.id, known.name into renamed
        from {schema}.change as known
        where known.action = 'renamed' and known.before ->> 'name' = named and known.id > last
            and known.kind = 'periodic_task'
        order by known.id
        limit 1;
        exit when not found;
        named := renamed.name;
        last := renamed.id;
    end loop;
    if row_now.created_at <= is_sensitive_since.at then
        return false;
    end if;
    return coalesce((
        select (known.before ->> 'sensitive')::boolean
        from {schema}.change as known
        where known.name = named and known.id > last and known.action = 'removed' and known.kind = 'periodic_task'
        order by known.id desc
        limit 1), false);
end
$$;

-- Recorded arguments with a mask in place of those that are not empty.
create or replace function {schema}.masked_arguments(recorded jsonb) returns jsonb
language sql immutable
as $$
    select jsonb_object_agg(key, case
        when key in ('args', 'kwargs') and value not in ('[]', '{}') then '"<sensitive>"'
        else value
    end)
    from jsonb_each(recorded)
$$;

-- The arguments that a change was about, masked if its row is sensitive now; NULL for a role that may not read them. In
-- PL/pgSQL a statement that is not reached needs no right.
create or replace function {schema}.arguments_of_change(id bigint, out before jsonb, out after jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    named text;
    at timestamptz;
begin
    if has_column_privilege('{schema}.change', 'arguments_before', 'select') then
        select known.arguments_before, known.arguments_after, known.name, known.at into before, after, named, at
        from {schema}.change as known
        where known.id = arguments_of_change.id;
        if coalesce(before, after) is not null and {schema}.is_sensitive_since(arguments_of_change.id, named, at) then
            before := {schema}.masked_arguments(before);
            after := {schema}.masked_arguments(after);
        end if;
    end if;
end
$$;

-- Delete up to `most` changes that are older than this, the oldest first; returns how many. Ids and times have the same
-- order but for clocks that were set back, so it reads the beginning of the table and no more.
create or replace function {schema}.prune_changes(keep interval, most int) returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    keep_from constant timestamptz := {schema}.now() - {schema}.kept_for('keep', keep);
    gone int;
begin
    if (most between 1 and 100000) is not true then
        raise exception using errcode = 'invalid_parameter_value',
            message = format('most is %s, not 1 to 100000', coalesce(most::text, 'null'));
    end if;
    delete from {schema}.change as known
    where known.id = any (array(
        select oldest.id
        from (select id, at from {schema}.change order by id limit most) as oldest
        where oldest.at < keep_from));
    get diagnostics gone = row_count;
    return gone;
end
$$;

revoke execute on function {schema}.prune_changes(interval, int) from public;
