-- Read the gauges of the whole cluster; what may be millions is counted up to %(most)s.
select
    (
        select count(*) from (
            select from {schema}.periodic_task
            where {is_on} and next_run_at <= {schema}.now()
            limit %(most)s) as due
    ) as due,
    (select count(*) from (select from {schema}.overdue limit %(most)s) as late) as overdue,
    (
        select coalesce(jsonb_object_agg(state, jobs), '{}') from (
            select state, count(*) as jobs from {schema}.active_job group by state) as states
    )::text as active,
    (select count(*) from {schema}.node where role = 'beat' and {schema}.is_recent(last_seen_at)) as beats,
    (select count(*) from {schema}.alert) as alerts,
    (select count(*) from {schema}.refused_declaration) as refused_declarations
