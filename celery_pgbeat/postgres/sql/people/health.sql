-- Read the state of the beats, of one host or all: how many are alive, when one was last seen, since when something is
-- overdue that beats or workers have to do, and why that may be.
--
-- What people have to do or to decide, and a run that only a person can end, does not count. Of all that is overdue
-- 1,000 are read in no order: to sort a million takes too long.
select
    {schema}.now() as now,
    (
        select count(*) from {schema}.node
        where role = 'beat' and {schema}.is_recent(last_seen_at)
            and hostname = coalesce(%(hostname)s, hostname)
    ) as beats,
    (
        select max(last_seen_at) from {schema}.node
        where role = 'beat' and hostname = coalesce(%(hostname)s, hostname)
    ) as last_seen_at,
    no_beat,
    late_since,
    case when unstarted then no_tracker end as no_tracker,
    {schema}.broker_in_words() as broker_problem
from {schema}.nodes_in_words(%(hostname)s)
cross join (
    select min(due_at) as late_since, bool_or(code = 'unstarted') as unstarted
    from (
        select code, due_at from {schema}.overdue where code not in ('work', 'decision', 'blocking') limit 1000
    ) as found
) as late
