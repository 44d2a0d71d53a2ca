-- Pause the periodic tasks that code has stopped declaring. They are kept: their history is, too.
update {schema}.periodic_task
set enabled = false, paused_by = %(manager)s, pause_reason = %(reason)s, paused_until = null
where name = any (array(
    select name from {schema}.periodic_task
    where managed_by = %(manager)s and declared is not null and enabled
        and name not in (select unnest(%(names)s::text[]))
    order by name
    for no key update skip locked))
returning name
