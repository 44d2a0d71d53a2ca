-- Pause a periodic task because its own job asks for it: it has no further run until a person resumes it.
update {schema}.periodic_task
set enabled = false, pause_reason = %(reason)s, paused_by = %(by)s, paused_until = null
where name = %(name)s
returning name
