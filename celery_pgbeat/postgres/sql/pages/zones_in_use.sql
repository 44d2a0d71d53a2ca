-- Read the time zones of the periodic tasks that run, each with one of their names.
select timezone, min(name) as name from {schema}.periodic_task
where enabled and timezone is not null
group by timezone
order by timezone
