-- Read one periodic task.
select * from {schema}.periodic_task where name = %(name)s
