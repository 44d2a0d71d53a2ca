-- Write the columns that code has changed since it last declared them, and no others.
--
-- What an operator has changed meanwhile stays until code changes that very column. A column that did not exist when
-- the row was last declared counts as declared with its default. A row that another transaction has locked is skipped,
-- and so is a change of `after` while another one writes that column; `find_differences` returns them. Nothing is
-- written unless this declaration is in force, and the lock keeps it so until the commit.
with fence as materialized (
    select hash from {schema}.declaration_in_force where app = %(manager)s and hash = %(hash)s for share
),
given as materialized (
    select definition ->> 'name' as name, definition from jsonb_array_elements(%(definitions)s::jsonb) as definition
),
lock as materialized (
    select {schema}.try_lock('periodic_task.after') is not null as is_mine
    where exists (
        select from {schema}.periodic_task as stored
        join given on given.name = stored.name
        where stored.declared ->> 'after' is distinct from given.definition ->> 'after')
),
fenced as materialized (
    select stored.name, given.definition,
        (
            select jsonb_object_agg(key, value) from jsonb_each(given.definition)
            where stored.declared is null
                or value <> coalesce(stored.declared -> key, %(defaults)s::jsonb -> key, 'null')
        ) as changes
    from {schema}.periodic_task as stored
    join given on given.name = stored.name
    where exists (select from fence)
        and stored.name = any (array(select name from given))
        and stored.managed_by = %(manager)s
        and stored.declared is distinct from given.definition
        and ((select is_mine from lock)
            or stored.declared ->> 'after' is not distinct from given.definition ->> 'after')
    order by stored.name
    for no key update of stored skip locked
)
update {schema}.periodic_task as stored
set (timezone, {definition}, lazy) = (
        select timezone, {definition}, lazy
        from jsonb_populate_record(stored, coalesce(fenced.changes, '{}'))
    ),
    declared = fenced.definition
from fenced
where stored.name = fenced.name and stored.name = any (array(select name from given))
returning stored.name, array(select jsonb_object_keys(fenced.changes) order by 1) as changed
