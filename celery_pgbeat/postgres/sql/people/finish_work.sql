-- End a task for people; returns the name of its periodic task.
select {schema}.finish(%(id)s::uuid, %(outcome)s::text, %(note)s::text, %(owner)s::text) as periodic_task
