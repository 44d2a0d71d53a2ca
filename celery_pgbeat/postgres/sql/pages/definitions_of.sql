-- Read the periodic tasks of these names.
select {task_columns} from {schema}.periodic_task
where name = any (%(names)s::text[])
