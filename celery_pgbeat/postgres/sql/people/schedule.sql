-- Declare periodic tasks: all of them or, if one is refused, none; returns the rows that were new or differed.
--
-- In name order, so that two such statements never wait for each other in a circle. An equal definition locks and
-- writes nothing: a mark on its row stays, its next run stays, no beat is woken. Without a timezone the app's zone
-- counts: the one that a beat filled in stays, and is equal, as for the function schedule(). Of the columns outside the
-- definition only the next run is set, of a new row. The code of an app is refused as the manager, and so is a row that
-- code declares, but for those in `taking_over`. One insert, and not calls of schedule(): those would look for each
-- name by a plan that was made while the table was empty.
with given as materialized (
    select * from jsonb_populate_recordset(null::{schema}.periodic_task, %(definitions)s::jsonb)
),
checked as materialized (
    select {schema}.refuse_managers_of_code(array_agg(managed_by)),
        {schema}.refuse_rows_of_code(
            array_agg(name) filter (where name <> all (%(taking_over)s::text[])),
            array_agg(managed_by) filter (where name <> all (%(taking_over)s::text[])))
    from given
)
insert into {schema}.periodic_task as stored (name, timezone, {definition}, managed_by, next_run_at)
select
    name, timezone, {definition}, managed_by,
    case when name = any (%(running_first)s::text[]) then {schema}.now() end
from given
cross join checked
where not exists (
    select from {schema}.periodic_task as equal
    where equal.name = given.name
        and (equal.declared_timezone, {equal.definition}, equal.managed_by)
            is not distinct from (given.timezone, {given.definition}, given.managed_by))
order by name
on conflict (name) do update
set timezone = case
        when excluded.timezone is null and stored.declared_timezone is null then stored.timezone
        else excluded.timezone
    end,
    declared_timezone = excluded.timezone, {definition = excluded}, managed_by = excluded.managed_by
returning {task_columns}
