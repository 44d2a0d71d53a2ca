-- Pause a periodic task, until a time or until somebody resumes it.
select {task_columns} from {schema}.pause(%(name)s, %(reason)s::text, %(until)s::timestamptz)
