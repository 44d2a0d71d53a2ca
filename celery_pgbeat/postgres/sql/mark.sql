-- Mark up to %(batch)s due periodic tasks for this beat, those due longest first.
--
-- While a herd is driven (more are due than a batch holds), %(fresh)s of them are those due last, so that what has only
-- just come due need not wait until the herd has passed, nor what fell a little behind.
-- Rows that another beat is marking at this moment are stepped over, not waited for. A mark older than its
-- lease (the marking beat's, written beside it: settings may differ) counts as none, and so does one more than a lease in the future (a clock set back); less
-- than that is a mark committed after this statement took its time, and must stand.
select name, schedule, timezone, anchor, dst, start_at, end_at, max_runs, run_count,
    {schema}.microseconds(jitter) as jitter_microseconds, blackout, blackout_action, windows, held_back, revision,
    planned_from, task, args, kwargs, queue, priority, options, sensitive, catchup,
    {schema}.microseconds(catchup_window) as catchup_window_microseconds, catchup_limit,
    {schema}.microseconds(max_run_time) as max_run_time_microseconds, next_run_at, planned_for, last_run_at, marked_at,
    taken_over, created_at
from {schema}.mark(
    %(beat)s, %(lease)s::double precision, %(batch)s::int, %(fresh)s::int, %(lazy_names)s::text[])
