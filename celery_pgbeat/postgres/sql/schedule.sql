-- Declare periodic tasks: all of them or, if one is refused, none; answers the rows that were new or differed.
--
-- In name order, so that two such statements never wait for each other in a circle. An equal definition gets
-- nowhere near its row: a mark on it stands, its next run stays, nobody is woken. Of the columns that are no
-- definition only a new row's first run may be set. One insert, and not calls of the function `schedule`: those
-- would look for each name by a plan made while the table was empty.
insert into {schema}.periodic_task as stored (
    name, task, args, kwargs, queue, priority, options, sensitive, schedule, timezone, anchor, dst, start_at, end_at,
    max_runs, jitter, overlap, catchup, catchup_window, catchup_limit, min_gap, max_run_time, blackout, blackout_action,
    group_name, submitter, subject, pause_after_failures, on_lost, tracking, managed_by, next_run_at)
select
    name, task, args, kwargs, queue, priority, options, sensitive, schedule, timezone, anchor, dst, start_at, end_at,
    max_runs, jitter, overlap, catchup, catchup_window, catchup_limit, min_gap, max_run_time, blackout, blackout_action,
    group_name, submitter, subject, pause_after_failures, on_lost, tracking, managed_by,
    case when name = any (%(running_first)s::text[]) then {schema}.now() end
from jsonb_populate_recordset(null::{schema}.periodic_task, %(definitions)s::jsonb) as given
where not exists (
    select from {schema}.periodic_task as equal
    where equal.name = given.name
        and (equal.task, equal.args, equal.kwargs, equal.queue, equal.priority, equal.options, equal.sensitive,
             equal.schedule, equal.timezone, equal.anchor, equal.dst, equal.start_at, equal.end_at, equal.max_runs,
             equal.jitter,
             equal.overlap, equal.catchup, equal.catchup_window, equal.catchup_limit, equal.min_gap, equal.max_run_time,
             equal.blackout, equal.blackout_action, equal.group_name, equal.submitter, equal.subject,
             equal.pause_after_failures, equal.on_lost, equal.tracking, equal.managed_by)
            is not distinct from
            (given.task, given.args, given.kwargs, given.queue, given.priority, given.options, given.sensitive,
             given.schedule, given.timezone, given.anchor, given.dst, given.start_at, given.end_at, given.max_runs,
             given.jitter,
             given.overlap, given.catchup, given.catchup_window, given.catchup_limit, given.min_gap, given.max_run_time,
             given.blackout, given.blackout_action, given.group_name, given.submitter, given.subject,
             given.pause_after_failures, given.on_lost, given.tracking, given.managed_by))
order by name
on conflict (name) do update
set task = excluded.task,
    args = excluded.args,
    kwargs = excluded.kwargs,
    queue = excluded.queue,
    priority = excluded.priority,
    options = excluded.options,
    sensitive = excluded.sensitive,
    schedule = excluded.schedule,
    timezone = excluded.timezone,
    anchor = excluded.anchor,
    dst = excluded.dst,
    start_at = excluded.start_at,
    end_at = excluded.end_at,
    max_runs = excluded.max_runs,
    jitter = excluded.jitter,
    overlap = excluded.overlap,
    catchup = excluded.catchup,
    catchup_window = excluded.catchup_window,
    catchup_limit = excluded.catchup_limit,
    min_gap = excluded.min_gap,
    max_run_time = excluded.max_run_time,
    blackout = excluded.blackout,
    blackout_action = excluded.blackout_action,
    group_name = excluded.group_name,
    submitter = excluded.submitter,
    subject = excluded.subject,
    pause_after_failures = excluded.pause_after_failures,
    on_lost = excluded.on_lost,
    tracking = excluded.tracking,
    managed_by = excluded.managed_by
returning {task_columns}
