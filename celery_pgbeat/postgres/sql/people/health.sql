-- Read the state of the beats, of one host or all: how many are alive, when one was last seen, since when something is
-- due that beats or workers have to do, and why that may be.
--
-- Late is what the view `overdue` has; here it is asked for the instant alone, so that a probe neither sorts nor reads
-- the messages of jobs. What people have to do or to decide, and a run that only a person can end, does not count. Nor
-- do rows to be planned for ten minutes, while beats live: they plan many of them in steps.
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
    least((
        select next_run_at from {schema}.periodic_task
        where {is_on} and next_run_at < {schema}.now()
            and next_run_at < {schema}.now() - {schema}.patience(mark_lease)
        order by next_run_at
        limit 1
    ), (
        select min(paused_until) from {schema}.periodic_task
        where not enabled and paused_until < {schema}.now()
            and paused_until < {schema}.now() - {schema}.patience(mark_lease)
    ), (
        select min(updated_at) from {schema}.to_be_planned()
        where updated_at <= {schema}.now() - case
            when no_beat is null then interval '10 minutes' else {schema}.patience(mark_lease)
        end
    ), jobs.late_since) as late_since,
    case when jobs.unstarted then no_tracker end as no_tracker,
    {schema}.broker_in_words() as broker_problem
from {schema}.nodes_in_words(%(hostname)s)
cross join lateral (
    select min(due) as late_since, bool_or(is_unstarted) as unstarted
    from {schema}.active_job as job
    left join {schema}.lost_message as lost (id, noticed_at) on lost.id = job.id and {is_still_lost}
    cross join lateral (
        select job.state = 'sent' and lost.id is null and job.wait_reason is null and job.owner is null
            and (job.resends > 0 or no_tracker is not null and job.tracking <> 'result')
    ) as queue (is_unstarted)
    cross join lateral (
        select case
            when job.state = 'pending' or is_unstarted then {schema}.due_since(
                job.origin, job.waited, job.run, job.resends, job.busy_until - job.pickup_deadline, job.created_at,
                coalesce(job.due_at, job.scheduled_for))
            when job.state in ('created', 'error') or job.owner is not null then null
            when job.wait_reason = 'slot'
            then case when job.group_name in (select {schema}.groups_with_room()) then job.created_at end
            when job.wait_reason is not null then null
            when lost.id is not null then coalesce(job.due_at, job.scheduled_for)
            when job.busy_until < {schema}.now() then job.busy_until
        end
    ) as since (due)
    where due < {schema}.now() - {schema}.patience(job.mark_lease)
) as jobs
