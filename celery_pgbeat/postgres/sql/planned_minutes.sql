-- Read how many periodic tasks have their next run in each of the coming minutes, of at most `most` tasks.
select date_trunc('minute', next_run_at) as minute, count(*) as runs, min(name) as name
from (
    select name, next_run_at from {schema}.periodic_task
    where {is_on} and next_run_at > {schema}.now() and next_run_at < %(until)s::timestamptz
    order by next_run_at
    limit %(most)s
) as planned
group by 1
order by 1
