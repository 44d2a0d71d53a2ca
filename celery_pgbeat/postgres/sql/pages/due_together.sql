-- Read the instant at which the most periodic tasks are due together; none if they are fewer than `least`.
select next_run_at, count(*) as number, min(name) as name,
    count(*) filter (where starts_with(lower(schedule collate "C"), 'every')) as intervals
from {schema}.periodic_task
where {is_on} and next_run_at is not null
group by next_run_at
having count(*) >= %(least)s
order by number desc, next_run_at
limit 1
