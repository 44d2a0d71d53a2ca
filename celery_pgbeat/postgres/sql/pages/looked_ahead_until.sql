-- Read the last periodic task that `look_ahead` has looked at; no row if it has reached the last of them.
select name, next_run_at from {schema}.periodic_task
where {is_on} and next_run_at is not null
    and (%(after_at)s::timestamptz is null
        or next_run_at >= %(after_at)s::timestamptz
            and (next_run_at, name) > (%(after_at)s::timestamptz, %(after)s))
order by next_run_at, name
offset %(most)s - 1
limit 1
