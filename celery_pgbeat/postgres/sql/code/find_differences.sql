-- Read which rows are not as code declares them: they belong to others, or what they need was locked when it wrote.
with given as materialized (
    select definition ->> 'name' as name, definition from jsonb_array_elements(%(definitions)s::jsonb) as definition
)
select stored.name, stored.managed_by
from {schema}.periodic_task as stored
join given on given.name = stored.name
where stored.name = any (array(select name from given))
    and (stored.managed_by <> %(manager)s or stored.declared is distinct from given.definition)
union all
select name, managed_by
from {schema}.periodic_task
where managed_by = %(manager)s and declared is not null and not declared ? 'withdrawn' and enabled
    and name not in (select unnest(%(names)s::text[]))
union all
select given.name, %(manager)s
from given
where not exists (select from {schema}.periodic_task as stored where stored.name = given.name)
