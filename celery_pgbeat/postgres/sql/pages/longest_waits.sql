-- Read how long the definitions of the periodic tasks that run let a message stay unacknowledged.
select
    (
        select {schema}.microseconds(coalesce(max(max_run_time), interval '0')) from {schema}.periodic_task
        where enabled
    ) as max_run_time_microseconds,
    (
        select (least(coalesce(max((options ->> 'countdown')::numeric), 0), 1000000000000) * 1000000)::bigint
        from {schema}.periodic_task
        where enabled and jsonb_typeof(options -> 'countdown') = 'number'
    ) as countdown_microseconds
