-- Read what each of these periodic tasks did since an instant: of each the latest `most` jobs, by their index.
select wanted.name, seen.*
from unnest(%(names)s::text[]) as wanted (name)
cross join lateral (
    (
        select id, state, reason, scheduled_for, created_at, started_at, finished_at from {schema}.finished_job
        where periodic_task = wanted.name and created_at >= %(since)s::timestamptz
        order by created_at desc
        limit %(most)s
    )
    union all
    (
        select id, state, null, scheduled_for, created_at, started_at, null from {schema}.active_job
        where periodic_task = wanted.name
        order by created_at desc
        limit %(most)s
    )
) as seen
