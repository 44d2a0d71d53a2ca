-- Find the unsent jobs that were marked before the clock was set back.
--
-- They are to be sent now, but their `check_at` is still to come, perhaps in hours. This reads all jobs that are not
-- final, so a beat runs it only when it starts and when it sees that the clock was set back.
update {schema}.active_job as job
set check_at = '-infinity'
where job.id = any (array(
    select id from {schema}.active_job
    where state = 'pending' and check_at > {schema}.now()
        and marked_at > {schema}.now() + coalesce(mark_lease, make_interval(secs => %(lease)s))
    for update skip locked))
returning job.id
