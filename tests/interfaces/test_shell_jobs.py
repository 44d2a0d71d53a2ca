"""`trigger --wait`, `job retry` and `jobs --follow` on a real database; the test does what beats and workers would."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from celery_pgbeat.api import PgBeat
from celery_pgbeat.cli.options import follow, waiting
from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.postgres.admin_queries import AdminQueries
from tests.harness.session import Session
from tests.harness.shell import Run

ENDED = (
    "with gone as (delete from pgbeat.active_job as job returning job) insert into pgbeat.finished_job "
    "select final.* from gone cross join lateral pgbeat.archived(job, '{state}', error => {error}) as final"
)


@pytest.fixture
def beat(migrated_database: str) -> Iterator[PgBeat]:
    made = PgBeat(url=migrated_database)
    made.schedule("nightly", "app.probe", "0 3 * * *", args=[1])
    made.database.execute(
        "insert into pgbeat.node (id, role, hostname, pid, version) values ('beat-1', 'beat', 'host', 1, '0.1')"
    )
    yield made
    made.close()


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have each of these happen while the command sleeps, one after the other; Ctrl-C follows the last."""

    def install(module: Any, steps: Sequence[Callable[[], Any]]) -> None:
        left = list(steps)

        def sleep(_: float) -> None:
            if not left:
                raise KeyboardInterrupt
            left.pop(0)()

        monkeypatch.setattr(module, "time", SimpleNamespace(sleep=sleep, monotonic=module.time.monotonic))

    return install


def started(session: Session) -> None:
    session.rows(
        "update pgbeat.active_job set state = 'running', worker = 'worker-1', token = gen_random_uuid(), "
        "started_at = coalesce(started_at, pgbeat.now())"
    )


def ended(session: Session, state: str = "succeeded", error: str | None = None) -> None:
    session.rows(ENDED.format(state=state, error="null" if error is None else f"'{error}'"))


# --- trigger


def test_arguments_are_given_as_json_and_a_trigger_says_the_id(run: Run, beat: PgBeat, session: Session) -> None:
    result = run("trigger", "nightly", "--args", "[2]", "--kwargs", '{"box": 7}')

    job = session.row("select id, message from pgbeat.active_job")
    assert (0, f"Triggered 'nightly': job {job['id']}\n") == (result.exit_code, result.stdout)
    assert ([2], {"box": 7}) == (job["message"]["args"], job["message"]["kwargs"])


@pytest.mark.parametrize(
    ("words", "exit_code", "said"),
    [
        (["--args", "{}"], 2, "--args is not a JSON array"),
        (["--kwargs", '{"secret'], 2, "--kwargs is not JSON"),
        (["--timeout", "5m"], 2, "--timeout needs --wait"),
        (["--wait", "--timeout", "soon"], 2, "--timeout is 'soon'"),
        (["--wait", "--timeout", "0s"], 2, "'0s': an interval must be longer than 0"),
        (["--args", json.dumps(["x" * 70_000])], 1, "bytes together, more than 65536"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_starts_nothing(
    run: Run, beat: PgBeat, session: Session, words: list[str], exit_code: int, said: str
) -> None:
    result = run("trigger", "nightly", *words)

    assert exit_code == result.exit_code, result.output
    assert said in result.stderr
    assert "secret" not in result.stderr
    assert [] == session.rows("select id from pgbeat.job")


def test_a_wait_ends_when_the_job_waits_for_a_decision(
    run: Run, beat: PgBeat, session: Session, meanwhile: Callable[..., None]
) -> None:
    beat.update("nightly", on_error="ask")

    def failed() -> None:
        session.rows("select pgbeat.ask(id, 'ValueError: no') from pgbeat.active_job")

    meanwhile(waiting, [lambda: started(session), failed])
    result = run("trigger", "nightly", "--wait")
    job = str(beat.jobs()[0].id)
    meanwhile(waiting, [lambda: started(session), failed])
    again = run("job", "retry", job, "--wait")

    assert [(1, f"Error: Job {job} has not succeeded, it is error: ValueError: no\n")] * 2 == [
        (result.exit_code, result.stderr),
        (again.exit_code, again.stderr),
    ]


def test_a_wait_shows_the_states_and_ends_well_only_with_a_success(
    run: Run, beat: PgBeat, session: Session, meanwhile: Callable[..., None]
) -> None:
    meanwhile(waiting, [lambda: started(session), lambda: None, lambda: ended(session)])
    well = run("trigger", "nightly", "--wait")
    meanwhile(waiting, [lambda: ended(session, "failed", "ValueError: no")])
    badly = run("trigger", "nightly", "--wait", "--timeout", "1h")
    meanwhile(waiting, [lambda: ended(session, "failed", "ValueError: no")])
    told = run("trigger", "nightly", "--wait", "--json")

    first, second, third = (str(job.id) for job in reversed(beat.jobs()))
    assert (0, f"Triggered 'nightly': job {first}\npending\nrunning on worker-1\nsucceeded\n", "") == (
        well.exit_code,
        well.stdout,
        well.stderr,
    )
    assert (1, f"Error: Job {second} has not succeeded, it is failed: ValueError: no\n") == (
        badly.exit_code,
        badly.stderr,
    )
    assert 1 == told.exit_code
    assert {
        "periodic_task": "nightly",
        "job": third,
        "state": "failed",
        "reason": None,
        "error": "ValueError: no",
    } == json.loads(told.stdout)


def test_a_wait_that_is_over_or_interrupted_leaves_the_job(
    run: Run, beat: PgBeat, meanwhile: Callable[..., None]
) -> None:
    late = run("trigger", "nightly", "--wait", "--timeout", "1ms")
    meanwhile(waiting, [])
    interrupted = run("trigger", "nightly", "--force", "--wait")

    second, first = (job.id for job in beat.jobs())
    assert (3, f"Error: Job {first} is still pending after 0.001s; it goes on\n") == (
        late.exit_code,
        late.stderr,
    )
    assert (1, f"Error: Stopped waiting; job {second} goes on\n") == (interrupted.exit_code, interrupted.stderr)


def test_only_a_single_name_takes_arguments_and_a_wait(run: Run, beat: PgBeat, session: Session) -> None:
    for words in (["--args", "[1]"], ["--kwargs", "{}"], ["--wait"]):
        for names in (["nightly", "hourly"], ["night*"], ["--all"]):
            result = run("trigger", *names, *words)
            assert (2, True) == (result.exit_code, "need a single NAME" in result.stderr)
    assert [] == session.rows("select id from pgbeat.job")


def test_without_a_beat_a_warning_comes_before_the_wait(
    run: Run, beat: PgBeat, session: Session, meanwhile: Callable[..., None]
) -> None:
    session.rows("delete from pgbeat.node")
    meanwhile(waiting, [lambda: ended(session)])

    result = run("trigger", "nightly", "--wait")

    assert (0, True) == (
        result.exit_code,
        result.stderr.startswith("Warning: No beat is running: none has ever been started"),
    )


# --- job retry


def test_a_retry_says_whose_arguments_the_new_job_has(
    run: Run, beat: PgBeat, session: Session, meanwhile: Callable[..., None]
) -> None:
    job = beat.trigger("nightly", args=[2])
    ended(session, "failed")

    own = run("job", "retry", str(job))
    ended(session, "failed")
    session.rows("update pgbeat.finished_job set origin = 'schedule', arguments = null")
    meanwhile(waiting, [lambda: ended(session)])
    rows = run("job", "retry", str(job), "--wait")

    last, before, _ = (str(found.id) for found in beat.jobs())
    assert f"Retried 'nightly': job {before}, with the arguments of that job\n" == own.stdout
    assert (0, f"Retried 'nightly': job {last}, with the arguments that the periodic task has now\n") == (
        rows.exit_code,
        rows.stdout.splitlines(keepends=True)[0],
    )


def test_a_job_that_cannot_be_retried_is_said(run: Run, beat: PgBeat) -> None:
    job = beat.trigger("nightly")
    unknown = "00000000-0000-0000-0000-000000000007"

    going = run("job", "retry", str(job))
    missing = run("job", "retry", unknown)

    assert (1, f"Error: Job {job} of 'nightly' is pending, not final: wait for its end\n") == (
        going.exit_code,
        going.stderr,
    )
    assert (1, f"Error: There is no job {unknown}: jobs are kept for pgbeat_retention\n") == (
        missing.exit_code,
        missing.stderr,
    )
    assert 2 == run("job", "retry", "x").exit_code


# --- jobs --follow


def test_new_and_changed_jobs_are_printed_once_until_ctrl_c(
    run: Run, beat: PgBeat, session: Session, meanwhile: Callable[..., None]
) -> None:
    beat.schedule("hourly", "app.probe", "every 1h")
    before = beat.trigger("hourly")

    def too_quick_to_be_seen() -> None:
        session.rows("update pgbeat.periodic_task set overlap = 'allow'")
        beat.trigger("nightly")
        ended(session, "failed", "ValueError: no")

    meanwhile(
        follow,
        [lambda: beat.trigger("nightly"), lambda: started(session), lambda: None, too_quick_to_be_seen, lambda: None],
    )

    result = run("jobs", "--follow", "--json")

    printed = [json.loads(line) for line in result.stdout.splitlines()]
    assert 0 == result.exit_code
    assert [
        ("nightly", "pending"),
        ("hourly", "running"),
        ("nightly", "running"),
        ("hourly", "failed"),
        ("nightly", "failed"),
        ("nightly", "failed"),
    ] == [(job["periodic_task"], job["state"]) for job in printed]
    assert {str(before), *(job["id"] for job in printed)} == {str(job.id) for job in beat.jobs()}


def test_a_line_says_when_what_and_why(
    run: Run, beat: PgBeat, session: Session, meanwhile: Callable[..., None]
) -> None:
    meanwhile(follow, [lambda: beat.trigger("nightly"), lambda: ended(session, "failed", "ValueError: no")])

    result = run("jobs", "nightly", "--follow", "--utc")

    (job,) = beat.jobs()
    pending, failed = (line.split() for line in result.stdout.splitlines())
    assert job.finished_at is not None
    assert f"{job.created_at:%Y-%m-%d %H:%M:%S}Z pending nightly {job.id}".split() == pending
    assert f"{job.finished_at:%Y-%m-%d %H:%M:%S}Z failed nightly {job.id} ValueError: no".split() == failed


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["nightly"], ["pending", "failed"]),
        (["--state", "failed"], ["failed"]),
        (["--like", "night%"], ["pending", "failed"]),
        (["--task", "app.other"], []),
        (["--queue", "slow"], []),
        (["--reason", "overlap"], []),
        (["hourly"], []),
    ],
)
def test_what_is_followed_can_be_filtered(
    run: Run,
    beat: PgBeat,
    session: Session,
    meanwhile: Callable[..., None],
    words: list[str],
    printed: list[str],
) -> None:
    meanwhile(follow, [lambda: beat.trigger("nightly"), lambda: ended(session, "failed")])

    result = run("jobs", *words, "--follow", "--json")

    assert printed == [json.loads(line)["state"] for line in result.stdout.splitlines()]


def test_an_outage_is_waited_out_and_nothing_of_it_is_missed(
    run: Run, beat: PgBeat, session: Session, meanwhile: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = AdminQueries.clock
    is_away = []

    def away() -> None:
        beat.trigger("nightly")
        ended(session)
        is_away.append(True)

    def read(queries: AdminQueries) -> Any:
        if is_away:
            raise DatabaseUnavailable("away")
        return clock(queries)

    monkeypatch.setattr(AdminQueries, "clock", read)
    meanwhile(follow, [away, is_away.clear, lambda: None])

    result = run("jobs", "--follow", "--json")

    assert (0, "away\n") == (result.exit_code, result.stderr)
    assert ["succeeded"] == [json.loads(line)["state"] for line in result.stdout.splitlines()]


def test_what_begins_now_takes_no_page(run: Run) -> None:
    result = run("jobs", "--follow", "--since", "2026-01-01")

    assert (2, True) == (result.exit_code, "--follow begins now" in result.stderr)


@pytest.mark.parametrize("request_", ["cancel", "terminate"])
def test_what_a_job_was_asked_to_do_is_shown(run: Run, beat: PgBeat, session: Session, request_: str) -> None:
    assert 0 == run("add", "sign off", "--kind", "human").exit_code
    work, job = (str(beat.trigger(name)) for name in ("sign off", "nightly"))
    assert 0 == run("work", "take", work, "--owner", "ann").exit_code
    for one, shown in ((work, ("work", "list", "--owner", "ann")), (job, ("job", "show", job))):
        assert request_ not in run(*shown).stdout
        session.rows("update pgbeat.active_job set stop_request = %s where id = %s", request_, one)

        assert request_ in run(*shown).stdout
        assert request_ == json.loads(run("job", "show", one, "--json").stdout)["stop_request"]


def test_people_work_at_the_shell(run: Run, beat: PgBeat) -> None:
    assert 0 == run("add", "sign off", "--kind", "human", "--target", "finance", "--subject", "the month").exit_code
    job, other = (str(beat.trigger("sign off", force=True)) for _ in range(2))
    mine = ("--owner", "ann", "--role", "finance")

    assert {job, other} == {one["id"] for one in json.loads(run("work", "list", *mine, "--json").stdout)}
    assert [] == json.loads(run("work", "list", "--owner", "bob", "--json").stdout)
    refused = run("work", "take", job, "--owner", "bob")
    assert (1, "is for 'finance', and 'bob' is none of them" in refused.stderr) == (refused.exit_code, True)
    assert f"Took a job of 'sign off', as 'ann': {job}\n" == run("work", "take", job, *mine).stdout
    refused = run("work", "take", job, "--owner", "bob", "--role", "finance")
    assert (1, f"Error: Job {job} of 'sign off' is with 'ann'\n") == (refused.exit_code, refused.stderr)
    assert "the month" in run("work", "list", *mine).stdout
    assert f"Released a job of 'sign off': {job}\n" == run("work", "release", job).stdout
    assert 0 == run("work", "take", job, *mine).exit_code
    assert (
        f"Finished a job of 'sign off' as failed: {job}\n"
        == run("work", "done", job, "--failed", "--note", "a figure is wrong", "--owner", "ann").stdout
    )
    assert "a figure is wrong" in run("job", job).stdout
    assert f"Cancelled a job of 'sign off': {other}\n" == run("job", "cancel", other, "--reason", "not now").stdout
    assert (1, 1) == (run("job", "cancel", other).exit_code, run("work", "done", other).exit_code)


def test_a_refusal_advises_commands_where_sql_and_python_have_functions(
    run: Run, beat: PgBeat, session: Session
) -> None:
    job = str(beat.trigger("nightly"))
    session.rows("update pgbeat.active_job set state = 'error', on_error = 'ask', check_at = 'infinity'")

    refused = run("job", "resend", job)

    assert re.search(
        "decide about it with `celery-pgbeat .*job retry` or `celery-pgbeat .*job fail`\n$", refused.stderr
    )


def test_a_job_whose_message_is_lost_is_sent_again_at_the_shell(run: Run, beat: PgBeat, session: Session) -> None:
    job = str(beat.trigger("nightly"))
    refused = run("job", "resend", job)
    session.rows("update pgbeat.active_job set state = 'sent', sends = 1, check_at = busy_until")

    done = run("job", "resend", job[:8])

    assert (1, f"Error: Job {job} of 'nightly' is to be sent: a beat sends it\n") == (refused.exit_code, refused.stderr)
    assert (0, f"A beat sends a job of 'nightly' again: {job}\n") == (done.exit_code, done.stdout)
    session.rows("update pgbeat.active_job set state = 'sent'")
    session.rows("delete from pgbeat.node")
    without_beat = run("job", "resend", job, "--json")
    printed = json.loads(without_beat.stdout)
    assert ("", True) == (
        done.stderr,
        without_beat.stderr.startswith("Warning: No beat is running: none has ever been started"),
    )
    assert {"job": job, "periodic_task": "nightly", "state": "pending"} == printed
    assert f"Cancelled a job of 'nightly': {job}\n" == run("job", "cancel", job).stdout
    missing = run("add", "nightly")
    assert (2, "Missing option '--task'." in missing.stderr) == (missing.exit_code, True)
