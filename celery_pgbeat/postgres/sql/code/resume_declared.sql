-- Resume the periodic tasks that code declares again, if they were paused only because it did not.
--
-- Nothing is written unless this declaration is in force, and the lock keeps it so until the commit.
with fence as materialized (
    select hash from {schema}.declaration_in_force where app = %(manager)s and hash = %(hash)s for share
)
update {schema}.periodic_task
set enabled = true
where name = any (array(
    select name from {schema}.periodic_task
    where exists (select from fence)
        and name = any (%(names)s::text[]) and managed_by = %(manager)s and not enabled and paused_by = %(manager)s
    order by name
    for no key update skip locked))
returning name
