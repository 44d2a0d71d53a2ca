-- Read the state of the beats, of one host or all: how many are alive, when one was last seen, since when a row waits.
--
-- A row waits while it is due and has no valid mark: it is unmarked, or the lease of its mark is over.
select
    {schema}.now() as now,
    (
        select count(*) from {schema}.node
        where role = 'beat' and last_seen_at > {schema}.now() - make_interval(secs => %(dead_after)s)
            and hostname = coalesce(%(hostname)s, hostname)
    ) as beats,
    (
        select max(last_seen_at) from {schema}.node
        where role = 'beat' and hostname = coalesce(%(hostname)s, hostname)
    ) as last_seen_at,
    (
        select max(stopped_at) from {schema}.stopped_beat where hostname = coalesce(%(hostname)s, hostname)
    ) as stopped_at,
    (
        select next_run_at from {schema}.periodic_task
        where {is_on} and next_run_at <= {schema}.now()
            and not {schema}.is_marked(marked_at, make_interval(secs => %(lease)s))
        order by next_run_at
        limit 1
    ) as waiting_since
