-- Read the present state: what is under way, what was made and ended recently, how long it took, what is overdue.
--
-- What was made within the last `seconds` is read by the index on created_at. What is overdue is counted up to 1,000.
with recent as materialized (
    select state, created_at, sent_at, started_at, finished_at from {schema}.job
    where created_at > {schema}.now() - make_interval(secs => %(seconds)s)
),
late as (
    select due_at from {schema}.overdue limit 1000
),
by_state as (
    select state, kind, count(*) as number from {schema}.active_job group by state, kind
)
select
    {schema}.now() as now,
    coalesce(
        (select json_object_agg(state, number) from (select state, sum(number) as number from by_state group by state)
         as summed), '{}')::text as under_way,
    coalesce((select number from by_state where state = 'running' and kind = 'human'), 0) as picked_up,
    count(*) as made,
    count(*) filter (where started_at is not null) as started,
    count(*) filter (where state = 'succeeded') as succeeded,
    count(*) filter (where state in ('failed', 'lost', 'expired', 'revoked')) as failed,
    count(*) filter (where state = 'skipped') as skipped,
    {schema}.microseconds(percentile_cont(0.5) within group (order by started_at - created_at))
        as start_median_microseconds,
    {schema}.microseconds(percentile_cont(0.95) within group (order by started_at - created_at))
        as start_worst_microseconds,
    (select count(*) from late) as late,
    (select min(due_at) from late) as late_since,
    (
        select next_run_at from {schema}.periodic_task
        where {is_on} and next_run_at > {schema}.now()
        order by next_run_at
        limit 1
    ) as next_run_at
from recent
