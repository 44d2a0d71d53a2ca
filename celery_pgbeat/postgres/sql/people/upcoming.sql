-- List what runs next, the soonest first.
select name, next_run_at, planned_for from {schema}.upcoming
where %(after)s::timestamptz is null or next_run_at > %(after)s::timestamptz
order by next_run_at, name
limit %(limit)s
