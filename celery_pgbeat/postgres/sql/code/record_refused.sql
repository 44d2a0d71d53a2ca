-- Record what code declares and its beats refuse, in place of what was recorded of that app before.
--
-- Nothing is written unless this declaration is in force, and the lock keeps it so until the commit. What was recorded
-- of another app is deleted too if none of its beats is alive: it was renamed. Beats that start together write in the
-- order of the names: one does it, the other finds nothing to do.
with fence as materialized (
    select hash from {schema}.declaration_in_force where app = %(manager)s and hash = %(hash)s for share
),
given as materialized (
    select name, reason from unnest(%(names)s::text[], %(reasons)s::text[]) as given (name, reason)
),
outdated as materialized (
    select app, name from {schema}.refused_declaration as refused
    where exists (select from fence)
        and case
            when app = %(manager)s then name not in (select name from given)
            else not exists (
                select from {schema}.declaration
                where declaration.app = refused.app and last_seen_at >= {schema}.now() - dead_after)
        end
    order by app, name
    for update skip locked
),
cleared as (
    delete from {schema}.refused_declaration as refused
    using outdated
    where refused.app = outdated.app and refused.name = outdated.name
)
insert into {schema}.refused_declaration as known (app, name, reason, hash)
select %(manager)s, name, reason, %(hash)s
from given
where exists (select from fence)
order by name
on conflict (app, name) do update
set reason = excluded.reason,
    hash = excluded.hash,
    seen_at = case when known.reason = excluded.reason then known.seen_at else excluded.seen_at end
where (known.reason, known.hash) is distinct from (excluded.reason, excluded.hash)
returning name
