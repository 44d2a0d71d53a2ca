-- Read the periodic tasks that have been overdue longest.
--
-- Overdue is what the view `status` calls so. The first condition is that of the index on next_run_at.
select name, next_run_at, marked_by from {schema}.periodic_task
where {is_on} and next_run_at < {schema}.now() and next_run_at < {schema}.now() - {schema}.patience(mark_lease)
order by next_run_at
limit %(limit)s
