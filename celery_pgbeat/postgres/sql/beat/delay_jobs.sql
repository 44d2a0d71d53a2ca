-- Delay unsent jobs of this beat for which the broker takes no message now, each for some seconds.
--
-- Then any beat takes the job over. No attempt is counted: the broker has refused whatever comes to that queue.
update {schema}.active_job as job
set marked_by = null,
    marked_at = null,
    sends = greatest(job.sends - 1, 0),
    error = 'closed queue: ' || delayed.error,
    check_at = {schema}.now() + make_interval(secs => delayed.seconds)
from unnest(%(jobs)s::uuid[], %(delays)s::double precision[], %(errors)s::text[]) as delayed (id, seconds, error)
where job.id = delayed.id and job.id = any (%(jobs)s::uuid[])
    and job.state = 'pending' and job.marked_by = %(beat)s
returning job.id
