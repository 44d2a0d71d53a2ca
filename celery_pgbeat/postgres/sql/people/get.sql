-- Read one periodic task.
select {task_columns} from {schema}.periodic_task where name = %(name)s
