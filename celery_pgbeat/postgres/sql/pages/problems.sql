-- Read the first periodic tasks that cannot be planned.
select name, problem from {schema}.periodic_task
where problem is not null
order by name
limit %(limit)s
