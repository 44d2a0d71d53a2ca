"""Parts that several statements have in common, each written once. A statement has its name in braces.

A part is put in before the statement is sent, so it costs nothing, and Postgres plans the statement as if it were
written out. A function would need its call to be inlined, and a right to read the whole row, which not all roles have.
`column_lists.py` makes the lists of columns in the same way.
"""

from __future__ import annotations

import re

# Which periodic tasks run at all, as the partial indexes have it: `{is_on}`, or `{is_on task}` for the alias `task`.
IS_ON = re.compile(r"\{is_on(?: (\w+))?\}")

FRAGMENTS = {
    # Which periodic tasks a page has, and in which order.
    "{page}": """where name > %(after)s
    and (%(pattern)s::text is null or name like %(pattern)s::text)
    and (%(task)s::text is null or task = %(task)s::text)
    and (%(queue)s::text is null or queue = %(queue)s::text)
    and (%(managed_by)s::text is null or managed_by = %(managed_by)s::text)
    and (%(group_name)s::text is null or group_name = %(group_name)s::text)
    and (%(enabled)s::boolean is null or enabled = %(enabled)s::boolean)
    and (%(with_problem)s::boolean is null or %(with_problem)s::boolean = (
        problem is not null or exists (
            select from {schema}.active_job as job where job.periodic_task = name and job.state = 'error')))
order by name
limit %(limit)s""",
    # What a beat reads of the rows that `mark` returns: the fields of `Due`, in their order.
    "{marked_columns}": """name, schedule, timezone, anchor, dst, start_at, end_at, max_runs, run_count,
    {schema}.microseconds(jitter) as jitter_microseconds, blackout, blackout_action, windows, held_back, revision,
    planned_from, task, args, kwargs, queue, priority, options, sensitive, catchup,
    {schema}.microseconds(catchup_window) as catchup_window_microseconds, catchup_limit,
    {schema}.microseconds(max_run_time) as max_run_time_microseconds, next_run_at, planned_for, last_run_at, marked_at,
    taken_over, created_at, comes_after, tracking""",
    # Which jobs past their busy_until nothing can repair, neither another message nor another run. `judge` gives them
    # up. `submit` does so too, for the job that blocks the occurrence it submits. `resending`: workers announce the
    # tracker, so a job without a start was never picked up, and may be sent again.
    "{is_beyond_repair}": """(state = 'sent' and (resends >= 3 or not resending or tracking = 'result')
                or state in ('running', 'retrying') and (on_lost = 'give_up' or stop_request is not null))""",
    # Which jobs have waited with the broker for so long that a beat asks it whether their messages are there.
    "{waits_long}": """state = 'sent' and tracking = 'full'
        and busy_until - pickup_deadline < {schema}.now() - interval '30 seconds'""",
    # Whether the note `lost` about the job still holds: it has neither gone on nor been sent again since.
    "{is_still_lost}": "job.state = 'sent' and lost.noticed_at > job.busy_until - job.pickup_deadline",
    # A function keeps one plan for its whole life, which must serve any size of table and of batch: rows are found by
    # index and joined by hash, and nothing is compiled.
    "{keeps_one_plan}": """set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
set jit = off
set plan_cache_mode = force_generic_plan""",
    # Count the ends of the jobs in `deleted`: name by name, as in every count, and in the order of the reports.
    "{counted}": """counted as materialized (
    select {schema}.count_end(name, id, state)
    from (
        select (job).periodic_task as name, id, state from deleted
        where (job).pause_after_failures is not null and (job).origin <> 'backfill'
        order by name, place
    ) as ended
)""",
    # End the job in `locked` as revoked if it is to stop: a worker reports that it goes on with another message.
    "{revoked}": """deleted as (
    delete from {schema}.active_job as job
    using locked
    where job.id = locked.id and locked.stop_request is not null
    returning job
),
revoked as (
    insert into {schema}.finished_job
    select final.* from deleted
    cross join lateral {schema}.archived(
        job, 'revoked', error => 'asked to ' || (job).stop_request || ': ' || %(error)s::text,
        attempt => %(attempt)s) as final
    returning id
)""",
    # Since when an app or a declaration has had a living beat without a break.
    "{listening_since}": """case
            when known.last_seen_at between excluded.last_seen_at - known.dead_after
                and excluded.last_seen_at + known.dead_after
            then known.listening_since
            else excluded.listening_since
        end""",
    # Whether one of `others` has a living beat, or was silent only while no beat of `announced` was active. An instant
    # in the future is from before the clock was set back.
    "{is_alive}": """greatest(
        case when others.last_seen_at <= {schema}.now() + others.dead_after then others.last_seen_at end,
        announced.listening_since
    ) >= {schema}.now() - others.dead_after""",
}


def with_fragments(text: str) -> str:
    """Return the text with the names of the parts replaced.

    Example:
        >>> with_fragments("select from task where {is_on task}")
        'select from task where task.enabled and not task.group_paused and task.problem is null'
    """
    text = IS_ON.sub(lambda found: _is_on(f"{found[1]}." if found[1] else ""), text)
    for name, fragment in FRAGMENTS.items():
        text = text.replace(name, fragment)
    return text


def _is_on(of: str) -> str:
    return f"{of}enabled and not {of}group_paused and {of}problem is null"
