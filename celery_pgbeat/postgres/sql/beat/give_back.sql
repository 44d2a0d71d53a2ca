-- Give unsent jobs back, so that any other beat sends them at once; without a list, all that this beat has marked.
--
-- The `check_at` of what this beat has marked is at most a lease away, so the index need not be read further than that.
-- With `late`, only jobs whose lease is over: what this beat has marked again meanwhile, it is going to send.
update {schema}.active_job
set marked_by = null, marked_at = null, check_at = '-infinity'
where check_at <= {schema}.now() + make_interval(secs => %(lease)s) and state = 'pending' and marked_by = %(beat)s
    and (%(jobs)s::uuid[] is null or id = any (%(jobs)s::uuid[]))
    and (not %(late)s or mark_lease is null or marked_at < {schema}.now() - mark_lease)
returning id
