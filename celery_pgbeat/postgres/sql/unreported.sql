-- Read the jobs that stand in the way of these periodic tasks, or are past busy_until, and whose end nobody reports.
select id from {schema}.active_job
where tracking = 'result' and state = 'submitted'
    and (periodic_task = any (%(names)s::text[]) or busy_until < {schema}.now())
order by busy_until
limit %(batch)s
