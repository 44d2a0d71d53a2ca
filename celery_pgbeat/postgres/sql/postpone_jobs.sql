-- Postpone jobs that this beat has taken over and may not send yet, each until an instant.
--
-- Then any beat takes it over again; its pickup deadline counts from that instant.
update {schema}.active_job as job
set marked_by = null,
    marked_at = null,
    sends = greatest(job.sends - 1, 0),
    busy_until = held.until + job.pickup_deadline,
    check_at = held.until
from unnest(%(jobs)s::uuid[], %(untils)s::timestamptz[]) as held (id, until)
where job.id = held.id and job.id = any (%(jobs)s::uuid[]) and job.state = 'pending' and job.marked_by = %(beat)s
returning job.id
