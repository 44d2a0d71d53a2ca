-- Look, without a lock or a write, whether there is anything to do, and when the next row will be due.
--
-- The one statement of an idle beat: poll, recover and judge share it. Each branch is one probe of a
-- partial index. Rows that a live beat has marked do not count, or every beat would spin on them.
select
    {schema}.now() as now,
    exists (
        select from {schema}.periodic_task
        where enabled and problem is null and next_run_at <= {schema}.now()
            and (marked_at is null
                or marked_at not between {schema}.now() - coalesce(mark_lease, make_interval(secs => %(lease)s))
                                     and {schema}.now() + coalesce(mark_lease, make_interval(secs => %(lease)s)))
            and (not lazy or name = any (%(lazy_names)s::text[]))
    ) as due,
    (
        select next_run_at from {schema}.periodic_task
        where enabled and problem is null and next_run_at > {schema}.now()
            and (not lazy or name = any (%(lazy_names)s::text[]))
        order by next_run_at
        limit 1
    ) as next_run_at,
    -- Ordered, or the planner, which takes `<>` for nearly always true, reads the whole table.
    coalesce((
        select true from {schema}.periodic_task
        where enabled and problem is null and planned_revision <> revision
        order by name
        limit 1
    ), false) as unplanned,
    exists (
        select from {schema}.active_job
        where state = 'pending'
            and (marked_at is null
                or marked_at not between {schema}.now() - coalesce(mark_lease, make_interval(secs => %(lease)s))
                                     and {schema}.now() + coalesce(mark_lease, make_interval(secs => %(lease)s)))
    ) as unsent,
    exists (select from {schema}.active_job where tracking = 'result') as unreported,
    exists (select from {schema}.active_job where busy_until < {schema}.now() and state <> 'pending') as lapsed,
    exists (
        select from {schema}.periodic_task
        where not enabled and paused_until is not null and paused_until <= {schema}.now()
    ) as resumes
