-- Record held jobs as skipped for a reason: they are never sent.
with gone as (
    delete from {schema}.active_job
    where id = any (%(jobs)s::uuid[]) and state = 'pending' and marked_by = %(beat)s
    returning *
)
insert into {schema}.finished_job (
    id, periodic_task, scheduled_for, origin, state, reason, task, queue, created_at, finished_at, run, sends, beat)
select id, periodic_task, scheduled_for, origin, 'skipped', %(reason)s, task, queue, created_at, {schema}.now(), run, sends,
    %(beat)s
from gone
returning id
