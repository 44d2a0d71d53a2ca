-- Resume a paused periodic task.
select * from {schema}.resume(%(name)s)
