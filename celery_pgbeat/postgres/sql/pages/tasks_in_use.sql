-- Read the Celery tasks of the periodic tasks that run, each with their number and one of their names.
select task, count(*) as rows, min(name) as name from {schema}.periodic_task
where enabled and kind = 'task'
group by task
order by task
