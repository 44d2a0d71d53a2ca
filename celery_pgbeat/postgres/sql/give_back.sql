-- Give unsent jobs back, so that any other beat sends them at once; without a list, all that this beat holds.
update {schema}.active_job
set marked_by = null, marked_at = null
where state = 'pending' and marked_by = %(beat)s
    and (%(jobs)s::uuid[] is null or id = any (%(jobs)s::uuid[]))
returning id
