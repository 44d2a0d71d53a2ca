-- Resume a paused periodic task.
select {task_columns} from {schema}.resume(%(name)s)
