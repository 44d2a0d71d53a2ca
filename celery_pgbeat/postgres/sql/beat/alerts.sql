-- Read the alerts that are not over, the oldest first.
select kind, name, due_at, reason, raised_at from {schema}.alert
order by raised_at, kind, name
limit %(limit)s
