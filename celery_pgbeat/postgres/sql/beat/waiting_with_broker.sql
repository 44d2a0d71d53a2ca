-- Read up to %(most)s jobs that have waited with the broker for long, of each queue and task some.
--
-- Not sorted by their age: a sort of a hundred thousand takes longer than all else.
select job.id, job.queue, job.task, (job.message -> 'options')::text as options
from (
    select (array_agg(id))[1:%(most)s] as ids from {schema}.active_job
    where {waits_long}
    group by queue, task
) as alike
cross join lateral unnest(alike.ids) with ordinality as waiting (id, place)
join {schema}.active_job as job on job.id = waiting.id
order by waiting.place
limit %(most)s
