-- Pause the periodic tasks that code has stopped declaring. They are kept, and so is their history.
--
-- Once: `declared` notes that they are withdrawn. So a row that a person resumes stays resumed until code declares it
-- again. Nothing is written unless this declaration is in force, and the lock keeps it so until the commit.
with fence as materialized (
    select hash from {schema}.declaration_in_force where app = %(manager)s and hash = %(hash)s for share
)
update {schema}.periodic_task
set enabled = false, paused_by = %(manager)s, pause_reason = %(reason)s, paused_until = null,
    declared = declared || '{"withdrawn": true}'
where name = any (array(
    select name from {schema}.periodic_task
    where exists (select from fence)
        and managed_by = %(manager)s and declared is not null and not declared ? 'withdrawn' and enabled
        and name not in (select unnest(%(names)s::text[]))
    order by name
    for no key update skip locked))
returning name
