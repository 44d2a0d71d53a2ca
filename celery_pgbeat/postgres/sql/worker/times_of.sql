-- Read what decides when a periodic task runs, and what it calls, for a job that changes its own times.
select task, timezone, dst, anchor, start_at from {schema}.periodic_task where name = %(name)s
