-- Pause a periodic task, until a time or until somebody resumes it.
select * from {schema}.pause(%(name)s, %(reason)s::text, %(until)s::timestamptz)
