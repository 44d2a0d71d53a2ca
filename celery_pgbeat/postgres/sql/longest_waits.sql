-- Tell how long a message may stay unacknowledged by what the periodic tasks that run say, in seconds.
select
    (select coalesce(extract(epoch from max(max_run_time)), 0) from {schema}.periodic_task where enabled)::float8
        as max_run_time,
    (
        select coalesce(max((options ->> 'countdown')::float8), 0) from {schema}.periodic_task
        where enabled and jsonb_typeof(options -> 'countdown') = 'number'
    ) as countdown
