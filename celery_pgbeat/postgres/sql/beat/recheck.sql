-- Set `check_at` to the deadline, for up to %(batch)s jobs whose `check_at` has passed and that are in time.
--
-- The deadline of a job that is being sent is the end of its lease, that of all others is busy_until. Most jobs end
-- before that instant and are never seen here. What is late stays as it is, for recover and judge.
with in_time as materialized (
    select id from {schema}.active_job
    where check_at > '-infinity' and check_at <= {schema}.now()
        and case
            when state = 'pending'
            then {schema}.is_marked(marked_at, coalesce(mark_lease, make_interval(secs => %(lease)s)))
            else busy_until >= {schema}.now()
        end
    order by check_at
    limit %(batch)s
    for update skip locked
)
update {schema}.active_job as job
set check_at = case
        when job.state = 'pending'
        then least(job.marked_at, {schema}.now()) + coalesce(job.mark_lease, make_interval(secs => %(lease)s))
        else job.busy_until
    end
from in_time
where job.id = in_time.id
returning job.id
