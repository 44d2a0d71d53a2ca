-- Pause a periodic task, until a time, for a number of seconds, or until a person resumes it.
select {task_columns}
from {schema}.pause(
    %(name)s, %(reason)s::text,
    coalesce(%(until)s::timestamptz, {schema}.now() + make_interval(secs => %(seconds)s::float8)))
