-- Start a job, if this copy of its message is the one that may: the guard's one decision.
--
-- Equal run, and either a higher attempt than the row's (Celery publishes a retry before anybody can write
-- `retrying`), or an equal attempt that does not run, or this very start's own token (the answer to the
-- first try may have been lost). Everything else is a second copy. A job that is asked to end makes no further
-- attempt. One with a min_gap is for start_spaced.sql.
-- As in the confirm, the only column that an index names is `check_at`: it moves where the job has waited for longer than
-- the lease.
select {schema}.start(
    %(job)s::uuid, %(run)s::int, %(attempt)s::int, %(token)s::uuid, %(worker)s, %(dead_after)s,
    %(task)s) as started
