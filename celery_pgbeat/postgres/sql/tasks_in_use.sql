-- Read the Celery tasks that periodic tasks name which run, each with how many and one of their names.
select task, count(*) as rows, min(name) as name from {schema}.periodic_task
where enabled
group by task
order by task
