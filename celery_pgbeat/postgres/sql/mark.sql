-- Mark up to %(batch)s due periodic tasks for this beat, those due longest first.
--
-- While a herd is driven (more are due than a batch holds), %(fresh)s of them are those due last, so that what has only
-- just come due need not wait until the herd has passed, nor what fell a little behind.
-- Rows that another beat is marking at this moment are stepped over, not waited for. A mark older than its
-- lease (the marking beat's, written beside it: settings may differ) counts as none, and so does one more than a lease in the future (a clock set back); less
-- than that is a mark committed after this statement took its time, and must stand.
-- `= any (array(...))` and not `in (...)`: at 1,000 of 100,000 rows the planner scans the whole table
-- for the latter. `no key update`: a plain `for update` hides a row while somebody inserts one that
-- refers to it.
update {schema}.periodic_task as task
set marked_by = %(beat)s,
    marked_at = {schema}.now(),
    mark_lease = make_interval(secs => %(lease)s),
    taken_over = task.marked_by is not null
where task.name = any (array(
    select name from {schema}.periodic_task
    where enabled and problem is null and next_run_at <= {schema}.now()
        and (marked_at is null
            or marked_at not between {schema}.now() - coalesce(mark_lease, make_interval(secs => %(lease)s))
                                     and {schema}.now() + coalesce(mark_lease, make_interval(secs => %(lease)s)))
        and (not lazy or name = any (%(lazy_names)s::text[]))
    order by next_run_at
    limit %(batch)s - %(fresh)s
    for no key update skip locked)
    || array(
    select name from {schema}.periodic_task
    where enabled and problem is null and next_run_at <= {schema}.now()
        and (marked_at is null
            or marked_at not between {schema}.now() - coalesce(mark_lease, make_interval(secs => %(lease)s))
                                     and {schema}.now() + coalesce(mark_lease, make_interval(secs => %(lease)s)))
        and (not lazy or name = any (%(lazy_names)s::text[]))
    order by next_run_at desc
    limit %(fresh)s
    for no key update skip locked))
returning name, schedule, timezone, coalesce(anchor, start_at, schedule_set_at) as anchor, dst, start_at, end_at,
    max_runs, run_count, jitter, blackout, blackout_action,
    case when windows_used is not null then {schema}.windows_of(windows_used)::text end as windows,
    null::timestamptz as held_back, revision, planned_from,
    task, args::text, kwargs::text, queue, priority, options::text, catchup, catchup_window, catchup_limit, max_run_time,
    next_run_at, planned_for, last_run_at, marked_at, taken_over, created_at
