-- Read how many of the final jobs were made in each of the last minutes, how they ended, and how long they waited.
--
-- Each minute is read by the index on created_at, up to `most` jobs of it: `covered` is the part of the minute that
-- these cover. So an hour of a million jobs costs what an hour of 60 x `most` does.
select begun.minute, seen.*
from generate_series(1, %(minutes)s::int) as back
cross join lateral (
    select date_trunc('minute', {schema}.now()) - back * interval '1 minute' as minute
) as begun
cross join lateral (
    select
        count(*) as made,
        count(*) filter (where state in ('failed', 'lost', 'expired', 'revoked')) as failed,
        count(*) filter (where state = 'skipped') as skipped,
        {schema}.microseconds(case
            when count(*) < %(most)s::int then interval '1 minute'
            else greatest(max(created_at) - begun.minute, interval '1 millisecond')
        end) as covered_microseconds,
        {schema}.microseconds(percentile_cont(0.5) within group (order by started_at - created_at))
            as wait_median_microseconds,
        {schema}.microseconds(percentile_cont(0.95) within group (order by started_at - created_at))
            as wait_worst_microseconds
    from (
        select state, created_at, started_at from {schema}.finished_job
        where created_at >= begun.minute and created_at < begun.minute + interval '1 minute'
        order by created_at
        limit %(most)s::int
    ) as sampled
) as seen
order by begun.minute
