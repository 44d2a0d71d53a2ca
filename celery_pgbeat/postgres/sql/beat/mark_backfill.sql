-- Mark one running backfill that has room for a job, or is to be ended, and read what decides its occurrences.
--
-- The oldest first, but not those that this beat has just left because their row was locked. A backfill that another
-- beat is marking is skipped. If that beat has just committed its mark, Postgres sees it: to lock the row, it checks
-- the conditions on the row's new version.
with marked as (
    update {schema}.backfill as backfill
    set marked_by = %(beat)s, marked_at = {schema}.now(), mark_lease = make_interval(secs => %(lease)s)
    where backfill.id = any (array(
        select candidate.id from {schema}.backfill as candidate
        where candidate.state = 'running'
            and not {schema}.is_marked(candidate.marked_at, candidate.mark_lease)
            and candidate.id <> all (%(but)s::uuid[])
            and candidate.id in (select id from {schema}.backfills_with_room(%(lazy_names)s::text[]) as with_room (id))
        order by candidate.created_at, candidate.id
        limit 1
        for no key update skip locked))
    returning backfill.*
)
select marked.periodic_task as name, stored.schedule, coalesce(stored.timezone, %(timezone)s) as timezone,
    coalesce(stored.anchor, stored.start_at, stored.schedule_set_at) as anchor, stored.dst, stored.start_at,
    stored.end_at, stored.max_runs, stored.run_count, {schema}.microseconds(stored.jitter) as jitter_microseconds,
    stored.blackout,
    stored.blackout_action, null::text as windows,
    null::timestamptz as held_back, stored.revision, stored.planned_from,
    case when stored.kind = 'human' then '' else stored.task end as task, stored.args::text, stored.kwargs::text,
    stored.queue, stored.priority, stored.options::text, stored.sensitive,
    {schema}.microseconds(stored.max_run_time) as max_run_time_microseconds,
    {schema}.undecided_from(stored) as undecided_from, stored.name is not null as is_there,
    marked.id::text as backfill, marked.since, marked.until, marked.mode, marked.reached, marked.next_at, marked.total,
    marked.submitted + marked.skipped as decided,
    {schema}.room_of(marked::{schema}.backfill) as room, marked.marked_at, stored.tracking
from marked
left join {schema}.periodic_task as stored on stored.name = marked.periodic_task
