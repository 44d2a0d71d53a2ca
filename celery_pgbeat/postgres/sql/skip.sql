-- Record held jobs as skipped for a reason: they are never sent.
with gone as (
    delete from {schema}.active_job as job
    where id = any (%(jobs)s::uuid[]) and state = 'pending' and marked_by = %(beat)s
    returning job
)
insert into {schema}.finished_job
select final.* from gone
cross join lateral {schema}.archived(job, 'skipped', %(reason)s, beat => %(beat)s) as final
returning id
