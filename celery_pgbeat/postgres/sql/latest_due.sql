-- Read the periodic tasks that have been due longest.
select name, next_run_at, marked_by from {schema}.periodic_task
where {is_on} and next_run_at < {schema}.now() - make_interval(secs => %(on_time)s)
order by next_run_at
limit %(limit)s
