-- Read the status of the periodic tasks of these names, by name.
select name, state, last_state, last_scheduled_for, {schema}.microseconds(lateness) as lateness_microseconds, failures
from {schema}.status
where name = any (%(names)s::text[])
