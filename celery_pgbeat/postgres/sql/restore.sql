-- Resume the periodic tasks that code declares again, where only their disappearance had paused them.
update {schema}.periodic_task
set enabled = true
where name = any (array(
    select name from {schema}.periodic_task
    where name = any (%(names)s::text[]) and managed_by = %(manager)s and not enabled and paused_by = %(manager)s
    order by name
    for no key update skip locked))
returning name
