-- Insert the periodic tasks that code declares and the table does not have.
--
-- `declared` keeps what code declared, so that the next difference is code's own and not an operator's. Beats that
-- start together insert in the same order: one does it, the others find nothing to do. Nothing is written unless this
-- declaration is in force, and the lock keeps it so until the commit. While another transaction writes `after`, what
-- comes after others is left out; `find_differences` returns it.
with fence as materialized (
    select hash from {schema}.declaration_in_force where app = %(manager)s and hash = %(hash)s for share
),
lock as materialized (
    select {schema}.try_lock('periodic_task.after') is not null as is_mine
    where exists (
        select from jsonb_array_elements(%(definitions)s::jsonb) as definition where definition ->> 'after' is not null)
)
insert into {schema}.periodic_task (
    name, timezone, {definition}, lazy, managed_by, declared, next_run_at)
select
    given.name, timezone, {definition}, lazy, %(manager)s, definition,
    case when given.name = any (%(running_first)s::text[]) then {schema}.now() end
from jsonb_array_elements(%(definitions)s::jsonb) as definition
cross join lateral jsonb_populate_record(null::{schema}.periodic_task, definition) as given
where exists (select from fence)
    and (given.after is null or (select is_mine from lock))
    and not exists (select from {schema}.periodic_task as stored where stored.name = given.name)
order by given.name
on conflict (name) do nothing
returning name
