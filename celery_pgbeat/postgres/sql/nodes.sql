-- List the beats and workers that have been heard of, with what each holds at this moment.
select
    id, role, hostname, pid, version, started_at, last_seen_at, tracking,
    {schema}.now() as now,
    last_seen_at > {schema}.now() - make_interval(secs => %(dead_after)s) as alive,
    case role
        when 'worker' then (
            select count(*) from {schema}.active_job
            where worker = node.id and state = 'running')
        else (
            select count(*) from {schema}.active_job
            where marked_by = node.id and state = 'pending')
    end as jobs
from {schema}.node
order by role, hostname, started_at, id
