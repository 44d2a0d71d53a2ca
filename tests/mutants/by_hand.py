"""Defects that somebody could plausibly make, each by the promise that it breaks."""

from __future__ import annotations

from collections.abc import Callable

from tests.model.mutants import Mutant
from tests.mutants.planted import Planted


def _in(file: str, *tests: str) -> Callable[..., Planted]:
    """Return what makes mutants of one file, which these tests must find, or those that are given with a mutant."""

    def planted(text: str, by: str = "", *others: str) -> Planted:
        return Planted(Mutant((file,), text, by), others or tests)

    return planted


AT_ONCE = "protocol/test_submitted_at_once.py"
TICK = "protocol/test_mark_and_submit.py"
POLICIES = "protocol/test_overlap_policies.py"
SENDING = "protocol/test_publish_confirm_recover.py"
FAILURES = "protocol/test_failures.py"
REPLAN = "protocol/test_replan.py"
REPORTS = "protocol/test_reports.py"
RACES = "race/test_two_connections.py"
HOSTILE = "interfaces/test_hostile_texts.py"
SHELL = "interfaces/test_shell.py"

mark = _in("postgres/sql/beat/mark.sql", TICK)
at_once = _in("postgres/sql/beat/mark.sql", AT_ONCE)
submit = _in("postgres/sql/beat/submit.sql", TICK, POLICIES)
policies = _in("postgres/sql/beat/submit.sql", POLICIES, TICK)
confirm = _in("postgres/sql/beat/confirm.sql", SENDING, "protocol/test_confirm_again.py", "protocol/test_recheck.py")
recover = _in("postgres/sql/beat/recover.sql", SENDING, POLICIES)
plan = _in("postgres/sql/beat/plan.sql", "protocol/test_row_trigger.py", REPLAN)
postpone = _in("postgres/sql/beat/postpone.sql", "protocol/test_blackouts.py")

STATEMENTS_OF_THE_BEAT = {
    "a mark does not keep other beats away": mark(
        "and not {schema}.is_marked(marked_at, coalesce(mark_lease, own_lease))"
    ),
    "a mark counts for the lease of the beat that reads it": mark("coalesce(mark_lease, own_lease)", "own_lease"),
    "a mark waits for a locked row": mark("for no key update skip locked", "for no key update", RACES),
    "a row of a closed queue is marked": mark(
        "(case when queue is null then coalesce(task, '') <> all (mark.closed_tasks) "
        "else queue <> all (mark.closed_queues) end or",
        "(true or",
        SENDING,
    ),
    "a mark from the future counts for good": _in("postgres/definitions/internal/marks.sql", TICK)(
        "and {schema}.now() + lease", "and 'infinity'"
    ),
    "a run that was postponed is submitted at once": at_once(
        "and (coalesce(stored.due_ahead, stored.planned_ahead))[present] = stored.next_run_at"
    ),
    "what the old time zone tables have planned is submitted at once": at_once(
        "and stored.planned_revision = stored.revision", "", REPLAN
    ),
    "a row is submitted at once in a window that has opened since": at_once("interval '1 minute'", "interval '1 hour'"),
    "what a group holds is submitted at once": at_once("and (limited or state = 'finished')", "and false"),
    "a submit is not fenced by its own mark": submit("stored.marked_at = is_as_decided.marked_at", "true"),
    "an occurrence is decided twice": submit(
        "and is_as_decided.decided_until > coalesce(stored.last_run_at, '-infinity')"
    ),
    "a submit passes a pause that is due": submit(
        "not {schema}.pause_is_due(", "true or not {schema}.pause_is_due(", FAILURES
    ),
    "a submit makes a run after max_runs": submit("(runs < task.max_runs)", "(runs <= task.max_runs)"),
    "a beat that may not judge yet gives a job up": submit("submit.may_judge and busy_until", "busy_until"),
    "buffer_one keeps any number waiting": policies("caught_up or waiting = 0", "true"),
    "buffer_all keeps one more than the limit": policies("waiting < submit", "waiting <= submit"),
    "a cancel takes a terminate back": policies("coalesce(job.stop_request, 'cancel')", "'cancel'"),
    "a beat in shadow sends": policies("when submit.shadow then 'shadow'", "", "protocol/test_shadow.py"),
    "a submit and a judge meet, and neither occurrence runs": policies(
        "order by id for key share skip locked", "order by id", "race/test_jobs.py"
    ),
    "a beat confirms what another has taken over": confirm("and marked_by = confirm.beat for", "for"),
    "a countdown is forgotten": confirm(":= confirm.delays <> '{}'", ":= false", SENDING, "protocol/test_recheck.py"),
    "a locked row at its confirm is forgotten": confirm(
        "where cardinality(places) < cardinality(confirm.jobs) and", "where false and"
    ),
    "what is later than its catchup_window is sent": recover(
        "when {schema}.now() - coalesce(job.due_at, job.scheduled_for) > task.catchup_window then 'too_late'"
    ),
    "a job that a person has triggered is too late": recover("job.origin in ('manual', 'backfill')", "false"),
    "a job with a stop request runs again": _in("postgres/fragments.py", POLICIES, REPORTS)(
        "(on_lost = 'give_up' or stop_request is not null)", "on_lost = 'give_up'"
    ),
    "a plan of an earlier definition is stored": plan("and task.revision = planned.revision"),
    "a plan replaces a run that was decided meanwhile": plan(
        "and task.planned_for is not distinct from planned.replaced", "", REPLAN
    ),
    "an old package calls what it cannot read a problem": plan(
        "and (planned.problem is null or %(version)s >= (select max(version) from {schema}.schema_version))",
        "",
        "interfaces/test_declarations.py",
        "interfaces/test_status.py",
        "protocol/test_row_trigger.py",
        "migration/test_migrate.py",
    ),
    "a postponement is not fenced by its mark": postpone("and task.marked_at = postponed.marked_at"),
}

start = _in("postgres/sql/worker/start.sql", REPORTS)
finish = _in("postgres/sql/worker/finish_many.sql", REPORTS, FAILURES)
heartbeat = _in("postgres/sql/worker/heartbeat.sql", REPORTS)
retry = _in("postgres/sql/worker/retry.sql", REPORTS, "protocol/test_recheck.py")
late = _in("postgres/sql/worker/start_lost.sql", REPORTS, "protocol/test_min_gap.py")
failures = _in("postgres/definitions/internal/failures.sql", FAILURES)

STATEMENTS_OF_THE_WORKER = {
    "a message of an earlier run starts": start("and run = start.run"),
    "a second copy starts": start("and state not in ('running', 'buffered', 'waiting')"),
    "a start may not ask again": start("(token = start.token or stop_request is null and", "(stop_request is null and"),
    "a message of another task starts a job": start("and (start.task is null or task = start.task)"),
    "a start without a token finishes a job": finish(
        "and (job.token = reported.token or job.token is null and job.attempt <= reported.attempt)"
    ),
    "a stop request does not overrule a failure": finish(
        "case when state = 'failed' and (job).stop_request is not null then 'revoked' else state end", "state"
    ),
    "a heartbeat renews another start": heartbeat("job.token = reported.token and job.state", "job.state"),
    "heartbeats go on beyond the hard limit": heartbeat(
        "attempt_at + least(max_run_time * 2, max_run_time + interval '60 seconds', interval '10 years') "
        "+ interval '30 seconds'",
        "'infinity'",
    ),
    "a retry keeps its token": retry("token = null,"),
    "a job with a stop request is retried": retry(
        "where job.id = locked.id and locked.stop_request is null", "where job.id = locked.id"
    ),
    "a failure before a resume counts": failures("and state.failures_from = pause_is_due.failures_from"),
    "a success undoes a pause that is due": failures(
        "and not {schema}.pause_is_due(count_end.name, task.failures_from, task.pause_after_failures)"
    ),
}

groups = _in("postgres/definitions/internal/groups.sql", "protocol/test_queues.py", "protocol/test_groups.py")
slots = _in("postgres/sql/beat/grant_slots.sql", "protocol/test_groups.py", "protocol/test_queues.py")
after = _in("postgres/sql/beat/settle_downstream.sql", "protocol/test_after.py", "interfaces/test_diamond.py")
buffered = _in("postgres/sql/beat/promote_buffered.sql", "protocol/test_buffered.py", POLICIES)

ORDER = {
    "a pause of a queue lets its jobs go": groups("when known.paused then", "when false then"),
    "a failure stops its group only once a beat has paused it": groups(
        "where failure.group_name = known.name", "where false"
    ),
    "an ordered group passes what is due": groups(
        "other := {schema}.due_in_group(known.name, first);", "other := null;"
    ),
    "a job gets a place that is taken": slots(
        "where other.group_name = known.name and other.slot = slot.slot", "where false"
    ),
    "an occurrence does not wait for other tasks": after("if ends.missing = '{}' then", "if true then"),
    "a buffered job is promoted beside another": buffered(
        "where not exists ( select from", "where true or not exists ( select from"
    ),
}

trigger = _in("postgres/definitions/internal/row_trigger.sql", "protocol/test_row_trigger.py", REPLAN)
schedules = _in("postgres/definitions/internal/schedules.sql", "interfaces/test_validation.py")
options = _in("postgres/definitions/internal/options.sql", "interfaces/test_validation.py")
texts = _in("declare/texts.py", "unit/test_declare.py", "interfaces/test_validation.py")
columns = _in("declare/columns.py", "unit/test_declare.py", "interfaces/test_limits.py")
importing = _in("api/importing.py", "unit/test_cli_exchange.py", SHELL, "interfaces/test_limits.py")

WRITES_AND_REFUSALS = {
    "an edit leaves what was planned ahead": trigger(
        "new.planned_ahead := null; new.due_ahead := null; new.marked_by := null; "
        "new.marked_at := null; new.taken_over := false; new.updated_at",
        "new.marked_by := null; new.marked_at := null; new.taken_over := false; new.updated_at",
        AT_ONCE,
    ),
    "an edit leaves the mark": trigger(
        "new.marked_by := null; new.marked_at := null; new.taken_over := false; new.updated_at", "new.updated_at"
    ),
    "what was missed while paused is caught up": trigger(
        "or coalesce(new.next_run_at <= now, new.planned_revision <> new.revision)"
    ),
    "a resume continues an earlier count of failures": trigger(
        "if new.enabled and not old.enabled or new.name <> old.name", "if new.name <> old.name", FAILURES
    ),
    "SQL takes an hour 24": schedules("not between low and high", "not between low and high + 1"),
    "SQL takes an interval of nothing": schedules(
        "elsif duration like '-%' or duration !~ '[1-9]' then", "elsif duration like '-%' then"
    ),
    "SQL takes a control character": options(
        "field || ' has the control character U+'",
        "null || ' has the control character U+'",
        "interfaces/test_validation.py",
        HOSTILE,
    ),
    "SQL takes the queue of a worker's inbox": options("'amq.%', '%.pidbox'", "'amq.%'"),
    "Python takes a control character of C1": texts("\\x7f-\\x9f", "\\x7f"),
    "Python takes the queue of a worker's inbox": texts("|.*\\.pidbox\\Z"),
    "Python takes a duration of nothing": columns("or not (duration or column.may_be_zero)"),
    "a file writes what code has declared": importing("elif manager.startswith(CODE):", "elif False:"),
    "the shell shows a control character": _in("texts/safe_text.py", HOSTILE, SHELL)(
        "text if text.isprintable() else", "text if True else"
    ),
}

DUE = "unit/planning/test_due_times.py"
DECISIONS = "unit/planning/test_decisions.py"
CATCHUP = "unit/planning/test_catchup.py"
CHANGES = "unit/schedules/test_dst_transitions.py"

decide = _in("planning/decide.py", DECISIONS, CATCHUP, DUE)
due = _in("planning/due_times.py", DUE, DECISIONS, CATCHUP)
nights = _in("schedules/wallclock/dst.py", CHANGES, "properties/test_dst_notes.py")
cron = _in("schedules/cron/fields.py", "unit/schedules/test_cron_dialect.py", "unit/schedules/test_cronsim_vectors.py")

PLANNING = {
    "the time of a dead beat makes an occurrence late": decide(
        "rules.on_time + rules.lease if row.taken_over else rules.on_time", "rules.on_time"
    ),
    "a catchup_window below on_time has no effect": decide("min(on_time, row.catchup_window)", "on_time"),
    "of what a window has moved the first is sent": decide(
        "return _decision(row, rules, due_times, together, together.last)",
        "return _decision(row, rules, due_times, together, together.first)",
    ),
    "the same occurrence is due again": decide(
        "following = due_times.following(decided.last)", "following = due_times.following(decided.last - MICROSECOND)"
    ),
    "catchup none catches up": decide('if row.catchup == "none": return None'),
    "catchup latest takes what is too old": decide(
        "return None if earliest_due is not None and due_times.due_at(latest) < earliest_due else latest",
        "return latest",
    ),
    "jitter reaches the next occurrence": due("following - occurrence - MICROSECOND)", "2 * (following - occurrence))"),
    "all rows have the same jitter": due("{self.name}\\0{occurrence.isoformat()}", "{occurrence.isoformat()}"),
    "a row made anew has the ids of the old one": _in("planning/identity.py", "unit/planning", TICK)(
        "+ _sent(_in_utc(created_at))"
    ),
    "a job at a fixed time runs in both passes": nights(
        '"default": Rule(Gap.AFTER, Repeat.FIRST)', '"default": Rule(Gap.AFTER, Repeat.BOTH)'
    ),
    "a job at a fixed time is lost in a gap": nights(
        '"default": Rule(Gap.AFTER, Repeat.FIRST)', '"default": Rule(Gap.NOTHING, Repeat.FIRST)'
    ),
    "each quarter of an hour counts in one pass": nights(
        '"default": Rule(Gap.NOTHING, Repeat.BOTH)', '"default": Rule(Gap.NOTHING, Repeat.FIRST)'
    ),
    "the end of a window is in it": _in("schedules/windows.py", "unit/schedules/test_windows.py", DUE)(
        "if closing is None: return free", "if closing is None:\n                return free + MICROSECOND"
    ),
}

dispatcher = _in(
    "beat/decide/dispatcher.py",
    "unit/beat/test_dispatcher.py",
    "unit/beat/test_expensive_rows.py",
    "protocol/test_failing_steps.py",
)
delivery = _in("beat/send/delivery.py", "unit/beat/test_delivery.py")
publisher = _in("beat/send/publisher.py", "unit/beat/test_publisher.py")
closed = _in("beat/send/closed_queues.py", "unit/beat/test_closed_queues.py")

TICK_OF_THE_BEAT = {
    "a beat judges before it may": dispatcher(
        "lambda work: work.past_deadline and self.clock.may_judge", "lambda work: work.past_deadline"
    ),
    "a beat hurries while it makes no progress": dispatcher(
        "self._stuck_pause = min(max(self._stuck_pause * 2, AGAIN), rest) rest = self._stuck_pause", "rest = 0.0"
    ),
    "a submit that Postgres ended is lost": _in(
        "beat/decide/submitter.py", "unit/beat/test_submitter.py", "postgres/test_busy_postgres.py"
    )("self._retries += [PendingRetry(half, lease_ends) for half in halves if half]"),
    "what is unsent is not given back": delivery(
        "self._queries_alone().give_back(unsent, late=boottime() >= lease_ends)", "pass"
    ),
    "what is given back takes a newer mark": delivery("late=boottime() >= lease_ends", "late=False"),
    "a batch is written without a confirm before": _in(
        "beat/send/confirmer.py", "unit/beat/test_confirmer.py", "unit/beat/test_delivery.py"
    )("self._unconfirmed() + count <= self._most", "True"),
    "a message of unknown fate counts as sent": publisher("if taken:", "if taken or taken is None:"),
    "a lost connection refuses a message": publisher("and not self._is_culprit(job):", "and self._is_culprit(job):"),
    "a beat that was stopped judges at once": _in("beat/database_clock.py", "unit/beat/test_database_clock.py")(
        "elapsed > self._longest_silence or"
    ),
    "what waits is sent in a blackout": _in(
        "beat/decide/recovery.py", "unit/beat", "protocol/test_blackouts.py", "acceptance/test_blackouts.py"
    )("elif free > now:", "elif False:"),
    "a task that is not allowed is recovered": _in(
        "beat/decide/recovery.py", "unit/beat", "acceptance/test_security.py"
    )("elif self._is_forbidden(job):", "elif False:"),
}

REAL = "acceptance/test_worker_guard.py"
guard = _in("worker/start/guard.py", "unit/worker/test_guard.py", "unit/worker/test_installation.py", REPORTS, REAL)
tracker = _in("worker/report/tracker.py", "unit/worker/test_tracker.py", "acceptance/test_worker_ends.py")
queue = _in("worker/report/report_queue.py", "unit/worker/test_report_queue.py", "unit/worker/test_report_thread.py")
thread = _in("worker/report/report_thread.py", "unit/worker/test_report_thread.py")
stops = _in(
    "worker/stop/stop_requests.py", "unit/worker/test_stop_requests.py", "acceptance/test_worker_stop_requests.py"
)

WORKER = {
    "a second copy runs": guard("if result not in (StartResult.STARTED, StartResult.UNTRACKED):", "if False:", REAL),
    "a copy that did not start reports an end": guard(
        "if result is not StartResult.STARTED: admission.start = None", "", REAL
    ),
    "a job that was refused is not requeued": guard(
        'self._context.put(Requeue(start, "refused: Postgres was out of reach", resend=True))',
        "pass",
        "acceptance/test_worker_guard.py",
        "acceptance/test_outages.py",
    ),
    "a task that is not allowed runs": guard(
        "if not self._context.settings.allows(task.name):", "if False:", "unit/worker", "acceptance/test_security.py"
    ),
    "a sensitive argument is in a retry": guard(
        "(MASKED if is_sensitive(fields) else {})", "{}", "unit/worker", "acceptance/test_sensitive.py"
    ),
    "a rejected message counts as requeued": tracker("if retval.requeue and task.acks_late:", "if retval.requeue:"),
    "the text of a sensitive error is kept": tracker(
        "stored(redaction.error_text(error, hiding))",
        "stored(redaction.error_text(error, False))",
        "unit/worker/test_tracker.py",
        "acceptance/test_sensitive.py",
    ),
    "a report that cannot pass is tried for good": queue("elif not is_kept(error):", "elif False:"),
    "the death of a process overtakes its report": thread("self._others.add_first([", "self._others.add_all(["),
    "a terminated job is final before its process": stops("if termination.is_over():", "if True:"),
}

POSTGRES = "postgres/test_session_settings.py"
engine = _in("postgres/engine.py", POSTGRES, "postgres/test_jit.py")
database = _in("postgres/database.py", REPORTS, "postgres/test_busy_postgres.py")
arrays = _in("postgres/arrays.py", "postgres/test_arrays.py")
listen = _in("postgres/listen.py", "protocol/test_listen.py")

DRIVERS = {
    "psycopg reads instants as text": engine('{"binary": params is not None, **given}', "given"),
    "a connection commits nothing": engine('isolation_level="AUTOCOMMIT",', "", TICK),
    "an error shows the parameters": engine(
        "hide_parameters=True,",
        "",
        "interfaces/test_sensitive.py",
        "unit/test_redaction.py",
        "interfaces/test_security.py",
    ),
    "psycopg prepares statements behind a pooler": engine(
        'arguments["prepare_threshold"] = None',
        "pass",
        "unit/test_pgbeat.py",
        "postgres/test_session_settings.py",
        "acceptance/test_pgbouncer.py",
    ),
    "a connection compiles our statements": engine("set_config('jit', 'off', false)", "current_setting('jit')"),
    "an error of psycopg has no SQLSTATE": database(
        'getattr(error, "pgcode", None) or getattr(error, "sqlstate", None)', 'getattr(error, "pgcode", None)'
    ),
    "an error of psycopg2 has no SQLSTATE": database(
        'getattr(error, "pgcode", None) or getattr(error, "sqlstate", None)', 'getattr(error, "sqlstate", None)'
    ),
    "psycopg's time-out of a connection is a bug of ours": database(
        '"InterfaceError", "ConnectionTimeout")',
        '"InterfaceError")',
        "postgres/test_busy_postgres.py",
        "postgres/test_session_settings.py",
        "acceptance/test_connections.py",
    ),
    "a backslash in an array is lost": arrays("""if '"' in text or "\\\\" in text else""", """if '"' in text else"""),
    "psycopg2's notifications end each wait": listen("connection.notifies.clear() return", "return"),
    "psycopg's notifications are not read": listen("connection.pgconn.consume_input()", "pass"),
}

fields = _in("beat/send/rendering/message_fields.py", "unit/beat/test_rendering.py")
body = _in("beat/send/rendering/body.py", "unit/beat/test_rendering.py")
template = _in("beat/send/rendering/message_template.py", "unit/beat/test_rendering.py", "acceptance/test_rendering.py")

RENDERING = {
    "a number is written otherwise": body("and not _NUMBER_WRITTEN_OTHERWISE(text)"),
    "priorities share a template": template("job.priority,", ""),
    "a message that expires is rendered late": body(
        "if left < 0:", "if False:", "unit/beat/test_rendering.py", "acceptance/test_rendering.py"
    ),
}

BY_HAND = {
    "tick-sql": STATEMENTS_OF_THE_BEAT,
    "worker-sql": STATEMENTS_OF_THE_WORKER,
    "order-sql": ORDER,
    "writes": WRITES_AND_REFUSALS,
    "planning": PLANNING,
    "tick": TICK_OF_THE_BEAT,
    "worker": WORKER,
    "drivers": DRIVERS,
    "rendering": RENDERING,
}
