-- Set next runs again that a new schedule has cleared, in the transaction that declared it.
update {schema}.periodic_task as stored
set next_run_at = kept.kept_at
from unnest(%(names)s::text[], %(next_run_ats)s::timestamptz[]) as kept (kept_name, kept_at)
where stored.name = kept.kept_name and stored.next_run_at is null
returning {task_columns}
