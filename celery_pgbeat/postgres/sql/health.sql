-- Read the state of the beats, of one host or all: how many are alive, when one was last seen, since when a run waits
-- for a beat or for the broker, and what a beat says of its broker.
--
-- A run waits while its row is due and has no valid mark (it is unmarked, or the lease of its mark is over), and while
-- its job is unsent. The `check_at` of an unsent job is at most a lease or half a minute away.
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
    (
        select max(stopped_at) from {schema}.stopped_beat where hostname = coalesce(%(hostname)s, hostname)
    ) as stopped_at,
    least((
        select next_run_at from {schema}.periodic_task
        where {is_on} and next_run_at <= {schema}.now()
            and not {schema}.is_marked(marked_at, make_interval(secs => %(lease)s))
        order by next_run_at
        limit 1
    ), (
        select min(due) from {schema}.active_job as job
        cross join lateral {schema}.due_since(
            job.origin, job.waited, job.run, job.resends, job.busy_until - job.pickup_deadline, job.created_at,
            coalesce(job.due_at, job.scheduled_for)) as due
        where job.state = 'pending' and due <= {schema}.now()
            and job.check_at <= {schema}.now() + greatest(interval '1 minute', make_interval(secs => %(lease)s))
    )) as waiting_since,
    {schema}.broker_in_words() as broker_problem
