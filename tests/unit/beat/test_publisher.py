from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from celery.beat import Scheduler
from celery.result import AsyncResult, EagerResult
from kombu.exceptions import OperationalError
from redis.exceptions import NoPermissionError, OutOfMemoryError, ReadOnlyError, ResponseError

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.beat.send import publisher as publishing
from celery_pgbeat.beat.send.messages import OutgoingJob, Refusal, Refused
from celery_pgbeat.beat.send.rendering.renderer import MessageBatch
from tests.harness.outbox import Outbox, app_of, job, jobs, outbox

LOST = ConnectionResetError("the broker is gone")


class FakeWriter:
    """A broker of which a test says what it does with a batch."""

    channel = None

    def __init__(self, answer: Callable[[list[bool | None]], None]) -> None:
        self.answer = answer
        self.written: list[list[Any]] = []

    def write(self, place: str, messages: Sequence[Any], taken: list[bool | None]) -> None:
        self.written.append(list(messages))
        self.answer(taken)


@pytest.fixture
def ours(request: pytest.FixtureRequest) -> Iterator[Outbox]:
    with outbox(app_of("memory://")) as made:
        assert made.broker.ready()
        yield made


def taking(taken: list[bool | None]) -> None:
    taken[:] = [True] * len(taken)


def lost(taken: list[bool | None]) -> None:
    raise LOST


def batches(ours: Outbox, monkeypatch: pytest.MonkeyPatch, writer: FakeWriter, size: int) -> None:
    """Have all jobs rendered, in batches of this size."""

    def render(given: Sequence[OutgoingJob], _now: Any) -> tuple[list[MessageBatch], list[OutgoingJob]]:
        made = []
        for first in range(0, len(given), size):
            batch = MessageBatch(writer, str(first))  # type: ignore[arg-type]
            for each in given[first : first + size]:
                batch.add(each, 0.0, each.periodic_task)
            made.append(batch)
        return made, []

    monkeypatch.setattr(ours.renderer, "render", render)


def ids(given: Sequence[OutgoingJob]) -> list[Any]:
    return [each.id for each in given]


def test_what_the_broker_took_before_the_connection_was_lost_is_sent_and_the_rest_is_unsent(
    ours: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(taken: list[bool | None]) -> None:
        taken[:3] = [True, False, True]
        raise LOST

    given = jobs(6)
    batches(ours, monkeypatch, FakeWriter(half), 5)

    told = ours.publish(given)

    assert [given[0].id, given[2].id] == [sent for sent, _ in told.sent]
    assert [given[1].id] == [delayed.job for delayed in told.delayed]
    assert {given[n].id for n in (3, 4, 5)} == set(told.unsent)
    assert [] == told.refused


@pytest.mark.parametrize(
    "error",
    [
        OutOfMemoryError("command not allowed when used memory > 'maxmemory'."),
        ReadOnlyError("You can't write against a read only replica."),
        NoPermissionError("User default has no permissions to run the 'lpush' command"),
        ResponseError("MISCONF Redis is configured to save RDB snapshots, but it is unable to persist to disk."),
        ResponseError("NOREPLICAS Not enough good replicas to write."),
    ],
)
def test_p10_what_redis_refuses_whatever_the_message_is_closes_the_queue(
    ours: Outbox, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refused(taken: list[bool | None]) -> None:
        raise error

    given = jobs(6)
    writer = FakeWriter(refused)
    batches(ours, monkeypatch, writer, 3)
    ours.broker.driver = "redis"

    told = ours.publish(given)

    assert set(ids(given)) == {delayed.job for delayed in told.delayed}
    assert ([], []) == (told.refused, told.unsent)
    assert set(ids(given)) == {delayed.job for delayed in ours.publish(given).delayed}
    assert ours.broker.is_proven


@pytest.mark.parametrize(
    "error",
    [ResponseError("string exceeds maximum allowed size (512MB)"), ResponseError("WRONGTYPE Operation against")],
)
def test_what_redis_refuses_because_of_one_command_closes_no_queue(ours: Outbox, error: Exception) -> None:
    ours.broker.driver = "redis"

    assert not ours.broker.is_closed_by(error)
    assert not ours.broker.is_closed_by(OperationalError("x"))


def test_after_a_lost_connection_no_further_batch_is_written(ours: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, given = FakeWriter(lost), jobs(6)
    batches(ours, monkeypatch, writer, 2)

    told = ours.publish(given)

    assert [["row-0", "row-1"]] == writer.written
    assert set(ids(given)) == set(told.unsent)


def test_a_job_of_a_batch_that_did_not_fail_is_not_suspected(ours: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, given = FakeWriter(lost), jobs(4)
    batches(ours, monkeypatch, writer, 2)
    ours.publish(given)
    writer.answer = taking

    told = ours.publish(given)

    assert ["row-2", "row-3"] == writer.written[-1]
    assert ids([*given[2:], *given[:2]]) == [sent for sent, _ in told.sent]


def test_a_stop_between_two_batches_leaves_the_second_unsent(ours: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(taken: list[bool | None]) -> None:
        taking(taken)
        ours.stopping = True

    given = jobs(4)
    batches(ours, monkeypatch, FakeWriter(stopped), 2)

    told = ours.publish(given)

    assert (ids(given[:2]), ids(given[2:])) == ([sent for sent, _ in told.sent], told.unsent)


def test_what_is_dropped_when_the_messages_are_made_is_not_written(
    ours: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, given = FakeWriter(taking), jobs(4)
    batches(ours, monkeypatch, writer, 2)

    told = ours.publisher.publish(given, boottime() + 60, dropped=lambda: {given[1].id, given[2].id})

    assert [["row-0", "row-3"]] == writer.written
    assert ([given[0].id, given[3].id], []) == ([sent for sent, _ in told.sent], told.unsent)


@pytest.mark.parametrize(("waited", "made"), [(publishing.MADE_WITHIN, 1), (publishing.MADE_WITHIN + 0.1, 2)])
def test_messages_that_were_made_a_while_before_they_can_be_written_are_made_again(
    ours: Outbox, monkeypatch: pytest.MonkeyPatch, waited: float, made: int
) -> None:
    now, renders = [0.0], []
    given = jobs(2)
    batches(ours, monkeypatch, FakeWriter(taking), 2)
    render = ours.renderer.render
    monkeypatch.setattr(ours.renderer, "render", lambda *args: renders.append(args) or render(*args))
    monkeypatch.setattr(publishing, "boottime", lambda: now[0])

    def waits() -> set[Any]:
        now[0] = waited
        return set()

    told = ours.publisher.publish(given, 60.0, dropped=waits)

    assert (ids(given), made) == ([sent for sent, _ in told.sent], len(renders))


def test_a_lease_that_ends_between_two_batches_leaves_the_second_unsent(
    ours: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]

    def slow(taken: list[bool | None]) -> None:
        taking(taken)
        now[0] = 11.0

    given = jobs(4)
    batches(ours, monkeypatch, FakeWriter(slow), 2)
    monkeypatch.setattr(publishing, "boottime", lambda: now[0])

    told = ours.publisher.publish(given, lease_ends=10.0)

    assert (ids(given[:2]), ids(given[2:])) == ([sent for sent, _ in told.sent], told.unsent)


def test_an_unexpected_error_loses_no_message(
    ours: Outbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(taken: list[bool | None]) -> None:
        raise ZeroDivisionError

    given = jobs(3)
    writer = FakeWriter(broken)
    batches(ours, monkeypatch, writer, 3)

    assert ids(given) == ours.publish(given).unsent
    assert "A batch failed; its messages go one by one" in caplog.text
    assert ids(given) == [sent for sent, _ in ours.publish(given).sent]
    assert 1 == len(writer.written)


def test_after_an_unexpected_error_of_the_renderer_messages_go_one_by_one(
    ours: Outbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(ours.renderer, "render", broken)
    given = jobs(3)

    assert ids(given) == [sent for sent, _ in ours.publish(given).sent]
    assert "ZeroDivisionError" in caplog.text


def test_a_message_that_loses_the_connection_twice_while_others_pass_is_refused(
    ours: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = jobs(2), job(periodic_task="bad")
    apply = ours.publisher._sender.apply_async

    def picky(entry: Any, producer: Any = None, **_: Any) -> Any:
        if entry.name == "bad":
            entry.error = LOST
            raise LOST
        return apply(entry, producer=producer)

    monkeypatch.setattr(ours.publisher._sender, "apply_async", picky)

    first = ours.publish([bad, *good])
    second = ours.publish([bad, *good])

    assert {bad.id, *ids(good)} == set(first.unsent)
    assert ids(good) == [sent for sent, _ in second.sent]
    assert [Refusal(bad.id, "bad", LOST, what=Refused.BREAKS_CONNECTION)] == second.refused


def test_suspects_are_forgotten_when_there_are_too_many(ours: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "SUSPECTS", 2)
    given = jobs(3)
    batches(ours, monkeypatch, FakeWriter(lost), 3)

    ours.publish(given)

    assert ids(given[1:]) == list(ours.publisher._suspects)


def test_the_seconds_until_a_message_may_start_are_returned_for_each(ours: Outbox) -> None:
    later, now = job(options={"countdown": 5}), job()

    assert [(later.id, 5.0), (now.id, 0.0)] == ours.publish([later, now]).sent


@pytest.mark.parametrize("sends", [1, 2])
def test_a_job_that_may_have_been_sent_before_counts_as_sent_if_its_task_finds_it_queued(
    ours: Outbox, monkeypatch: pytest.MonkeyPatch, sends: int
) -> None:
    """The beat before may have died after the message; a lock of the task's own is then that message's."""
    monkeypatch.setattr(Scheduler, "apply_async", lambda *_, **__: None)
    monkeypatch.setattr(ours.renderer, "render", lambda given, _now: ([], given))

    answer = ours.publisher.publish([job(sends=sends)], boottime() + 60)

    assert (sends - 1, 2 - sends) == (len(answer.sent), len(answer.not_sent))


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (lambda job: AsyncResult(str(job.id)), "sent"),
        (lambda job: AsyncResult("another"), "not sent"),
        (lambda job: None, "not sent"),
        (lambda job: EagerResult(None, None, "REJECTED"), "not sent"),
        (lambda job: EagerResult(str(job.id), 1, "SUCCESS"), ("succeeded", None)),
        (lambda job: EagerResult(str(job.id), ValueError("x"), "FAILURE"), ("failed", "ValueError: x")),
        (lambda job: EagerResult(str(job.id), None, "REVOKED"), ("revoked", None)),
    ],
)
def test_the_result_of_apply_async_shows_whether_there_is_a_message(
    ours: Outbox, monkeypatch: pytest.MonkeyPatch, returned: Callable[[OutgoingJob], Any], expected: Any
) -> None:
    """A task class of another package may send nothing, and an eager app runs the task here."""
    one = job()
    monkeypatch.setattr(Scheduler, "apply_async", lambda *_, **__: returned(one))
    monkeypatch.setattr(ours.renderer, "render", lambda given, _now: ([], given))

    answer = ours.publisher.publish([one], boottime() + 60)

    found = [*("sent" for _ in answer.sent), *("not sent" for _ in answer.not_sent)]
    assert [expected] == found + [(end.state, end.error) for end in answer.ended]
    assert [] == answer.unsent
    assert [] == answer.refused
