-- List what runs next, the soonest first.
select name, next_run_at, planned_for from {schema}.upcoming
order by next_run_at, name
limit %(limit)s
