-- Set `check_at` of up to %(batch)s jobs that were to be looked at by now and are in time: to their deadline.
--
-- That is the end of the lease of what is being sent, and the busy_until of all others. Most jobs end before that
-- instant and are never seen here. What is late stays as it is, for recover and judge.
with passed as materialized (
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
from passed
where job.id = passed.id
returning job.id
