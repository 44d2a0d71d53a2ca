-- Resume up to %(batch)s periodic tasks whose pause is over.
update {schema}.periodic_task
set enabled = true
where name = any (array(
    select name from {schema}.periodic_task
    where not enabled and paused_until is not null and paused_until <= {schema}.now()
    limit %(batch)s
    for no key update skip locked))
returning name
