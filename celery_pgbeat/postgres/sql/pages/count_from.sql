-- Let new periodic tasks count from instants before they were written: what was due since then is decided by catchup.
--
-- For rows that this transaction has inserted: no beat has seen them, and none is planned. They stay unplanned. Because
-- planned_revision changes, the row trigger takes this for a write of a beat, and leaves planned_from as it is written.
update {schema}.periodic_task as task
set planned_from = least(task.planned_from, given.since),
    planned_revision = task.planned_revision - 1
from unnest(%(names)s::text[], %(instants)s::timestamptz[]) as given (name, since)
where task.name = given.name and task.name = any (%(names)s::text[])
    and task.planned_revision < task.revision and task.last_run_at is null and task.enabled
returning task.name
