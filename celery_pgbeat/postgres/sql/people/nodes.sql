-- List the beats and workers that were seen lately, with what each is doing at this moment: counted for all at once.
with under_way as (
    select case state when 'running' then worker else marked_by end as node, count(*) as jobs
    from {schema}.active_job
    where state in ('running', 'pending')
    group by 1
)
select
    id, role, hostname, pid, version, started_at, last_seen_at, tracking, broker_problem, broker_problem_since,
    mode, {schema}.now() as now,
    {schema}.is_recent(last_seen_at) as alive,
    coalesce(under_way.jobs, 0) as jobs
from {schema}.node
left join under_way on under_way.node = node.id
order by role, hostname, started_at, id
