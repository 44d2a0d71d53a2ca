-- Read backfills, the latest first, each with the number of its jobs that are not final.
select id, periodic_task, since, until, mode, max_active, state, reached, total, submitted, skipped, problem,
    created_at, created_by, finished_at,
    (select count(*) from {schema}.active_job as job where job.backfill = backfill.id) as active
from {schema}.backfill as backfill
where (%(name)s::text is null or periodic_task = %(name)s::text)
    and (%(state)s::text is null or state = %(state)s::text)
    and (%(id)s::uuid is null or id = %(id)s::uuid)
order by created_at desc, id
limit %(limit)s
