-- Postpone jobs that this beat has taken over and may not send yet, each until an instant.
--
-- At that instant any beat may take the job over; its pickup deadline counts from then.
update {schema}.active_job as job
set marked_by = null,
    marked_at = null,
    sends = greatest(job.sends - 1, 0),
    busy_until = postponed.until + job.pickup_deadline,
    check_at = postponed.until
from unnest(%(jobs)s::uuid[], %(untils)s::timestamptz[]) as postponed (id, until)
where job.id = postponed.id and job.id = any (%(jobs)s::uuid[])
    and job.state = 'pending' and job.marked_by = %(beat)s
returning job.id
