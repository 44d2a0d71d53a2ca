-- Read how many periodic tasks have their next run in each of the coming minutes, of at most `most` tasks.
--
-- `intervals` counts those that repeat an interval: for them another advice holds than for a cron schedule.
select date_trunc('minute', next_run_at) as minute, count(*) as runs, min(name) as name,
    count(*) filter (where starts_with(ltrim(lower(schedule), '@'), 'every')) as intervals
from (
    select name, next_run_at, schedule from {schema}.periodic_task
    where {is_on} and next_run_at > {schema}.now() and next_run_at < %(until)s::timestamptz
    order by next_run_at
    limit %(most)s
) as planned
group by 1
order by 1
