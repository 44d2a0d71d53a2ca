-- Pause a periodic task until a time, or for a duration, because its own job asks for it.
--
-- It never shortens another pause, nor gives an end to one that has none.
update {schema}.periodic_task as task
set enabled = false, pause_reason = 'snoozed by its own job', paused_by = %(by)s, paused_until = wanted.until
from (
    select coalesce(%(until)s::timestamptz, {schema}.now() + make_interval(secs => %(seconds)s::float8)) as until
) as wanted
where task.name = %(name)s and wanted.until > {schema}.now() and (task.enabled or task.paused_until < wanted.until)
returning task.name
