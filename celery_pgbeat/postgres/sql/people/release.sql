-- Give a task for people back; returns the name of its periodic task.
select {schema}.release(%(id)s::uuid, %(owner)s::text) as periodic_task
