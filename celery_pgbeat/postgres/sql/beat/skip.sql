-- Record as skipped, for a reason, jobs that this beat has marked: they are never sent.
with deleted as (
    delete from {schema}.active_job as job
    where id = any (%(jobs)s::uuid[]) and state = 'pending' and marked_by = %(beat)s
    returning job
)
insert into {schema}.finished_job
select final.* from deleted
cross join lateral {schema}.archived(job, 'skipped', %(reason)s, beat => %(beat)s) as final
returning id
