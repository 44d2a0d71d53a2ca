"""A publisher reports what became of each message: sent, refused, or unknown."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from celery import signals
from kombu import Connection, Exchange, Queue
from kombu.common import Broadcast

from celery_pgbeat.beat.send.messages import OutgoingJob
from celery_pgbeat.beat.send.publisher import BATCH, Published
from celery_pgbeat.beat.send.rendering import body
from celery_pgbeat.beat.send.rendering.renderer import MessageBatch
from tests.harness import broker
from tests.harness.broker import both_brokers
from tests.harness.outbox import Outbox, app_of, job, jobs, outbox, taken_from
from tests.harness.proxy import Proxy, proxy

rabbitmq = pytest.mark.parametrize("broker_url", [pytest.param("amqp", marks=pytest.mark.amqp)], indirect=True)
MANY = 40


@pytest.fixture
def door(broker_url: str) -> Iterator[Proxy]:
    with proxy(broker_url) as made:
        yield made


@pytest.fixture
def ours(door: Proxy) -> Iterator[Outbox]:
    """An outbox that reaches the broker by the door, and has the template of `jobs`."""
    app = app_of(door.url, broker_transport_options={"read_timeout": 2, "socket_timeout": 2})
    with outbox(app) as made:
        assert MANY == len(made.publish(jobs(MANY)).sent)
        assert MANY == made.rendered
        yield made


def ids(given: list[OutgoingJob]) -> list[Any]:
    return [job.id for job in given]


def sent(told: Published) -> list[Any]:
    return [job for job, _ in told.sent]


def reachable(outbox: Outbox) -> None:
    """Wait until the broker is connected again; an outage just met makes a publisher pause."""
    until = time.monotonic() + 10
    while not outbox.broker.ready():
        assert time.monotonic() < until
        time.sleep(0.05)


@both_brokers
def test_a_worker_runs_rendered_messages(broker_url: str) -> None:
    given = jobs(MANY)
    with outbox(app_of(broker_url)) as ours:
        told = ours.publish(given)

    assert MANY == ours.rendered
    assert ids(given) == sent(told)
    found = broker.drain(broker_url)
    assert [(str(job.id), job.task, [n], {"a": f"b{n}"}) for n, job in enumerate(given)] == [
        (message.id, message.task, message.args, message.kwargs) for message in found
    ]
    assert [job.periodic_task for job in given] == [message.headers["pgbeat"]["periodic_task"] for message in found]


def test_one_redis_client_writes_all_messages_of_a_connection(broker_url: str) -> None:
    with outbox(app_of(broker_url)) as ours:
        ours.publish(jobs(1))
        channel = ours.broker.producer.channel

        assert channel._create_client() is channel._create_client()


@both_brokers
def test_a_queue_that_is_not_there_is_declared_before_a_batch_goes_to_it(broker_url: str) -> None:
    with outbox(app_of(broker_url)) as ours:
        ours.publish(jobs(MANY, queue="fresh"))

    assert MANY == ours.rendered
    with Connection(broker_url) as connection:
        assert MANY == Queue("fresh", channel=connection.default_channel).queue_declare(passive=True).message_count


def until_settled(outbox: Outbox, given: list[OutgoingJob]) -> Published:
    """Publish what is unsent again, as a dispatcher does with what it gave back, until nothing is."""
    told, left = Published(), given
    for _ in range(20):
        reachable(outbox)
        answer = outbox.publish([*left, job(queue="healthy")])  # there is always something else to send
        told.sent += answer.sent
        told.refused += answer.refused
        left = [each for each in left if each.id in answer.unsent]
        if not left:
            return told
    raise AssertionError(f"{len(left)} of {len(given)} jobs are still unsent")


@both_brokers
def test_a_connection_that_breaks_in_the_middle_of_a_batch_leaves_unknown_what_was_not_confirmed(
    ours: Outbox, door: Proxy, broker_url: str
) -> None:
    given = jobs(MANY)
    door.cut_after = 9000  # bytes: some messages, and a part of one

    told = ours.publish(given)

    assert ([], ids(given)) == (told.refused, sent(told) + told.unsent)
    assert MANY > len(told.sent) <= len(taken_from(broker_url))
    assert not told.sent or broker_url.startswith("amqp"), "Redis confirms a batch as one"


@both_brokers
def test_after_a_batch_that_failed_its_messages_go_one_by_one_and_others_many_at_once(
    ours: Outbox, door: Proxy, broker_url: str
) -> None:
    given = jobs(MANY)
    door.cut_after = 9000
    ours.publish(given)
    reachable(ours)
    taken_from(broker_url)
    rendered = ours.rendered

    assert ids(given) == sent(ours.publish(given))
    assert (rendered, MANY) == (ours.rendered, len(taken_from(broker_url)))
    assert MANY == len(ours.publish(jobs(MANY)).sent)
    assert rendered + MANY == ours.rendered


@both_brokers
def test_a_broker_that_does_not_answer_leaves_a_batch_unknown_within_the_time_limit(
    ours: Outbox, door: Proxy, broker_url: str
) -> None:
    broker.drain(broker_url)
    given = jobs(MANY)
    door.mute = True
    began = time.monotonic()

    told = ours.publish(given)

    assert ([], [], ids(given)) == (told.sent, told.refused, told.unsent)
    assert 1 < time.monotonic() - began < 5
    assert MANY == broker.depth(broker_url)  # unknown, not unsent


@both_brokers
def test_only_the_message_that_breaks_each_connection_is_given_up(ours: Outbox, door: Proxy, broker_url: str) -> None:
    broker.drain(broker_url)
    given = jobs(MANY)
    poison = given[7] = job(periodic_task="POISON")
    door.cut_at = b"POISON"

    told = until_settled(ours, given)

    assert [poison.id] == [refusal.job for refusal in told.refused]
    assert {each.id for each in given} - {poison.id} <= set(sent(told))
    arrived = Counter(message.id for message in broker.drain(broker_url))
    assert {str(each.id) for each in given} - {str(poison.id)} == set(arrived)


@rabbitmq
def test_p10_messages_that_rabbitmq_rejects_wait_and_the_rest_is_sent(broker_url: str) -> None:
    full = Queue("full", queue_arguments={"x-max-length": 3, "x-overflow": "reject-publish"})
    given = jobs(10, queue="full")
    with outbox(app_of(broker_url, task_queues=[full])) as ours:
        told = ours.publish(given)
        other = ours.publish(jobs(5, queue="roomy"))

    assert (10, 5) == (ours.rendered, len(other.sent)) or (15, 5) == (ours.rendered, len(other.sent))
    assert ids(given[:3]) == sent(told)
    assert ids(given[3:]) == [delayed.job for delayed in told.delayed]
    assert ours.closed
    assert 3 == broker.depth(broker_url, "full")


@rabbitmq
@pytest.mark.parametrize(
    ("queues", "row"),
    [
        ([], {"options": {"exchange": "nowhere", "routing_key": "key", "exchange_type": "topic"}}),
        ([Broadcast("nowhere")], {"queue": "nowhere"}),
        ([Queue("wide", Exchange("nowhere", "topic"), routing_key="key", no_declare=True)], {"queue": "wide"}),
    ],
    ids=["of a row", "of a broadcast without a worker", "of a queue that is not declared"],
)
def test_a_message_to_a_missing_exchange_of_rabbitmq_is_refused_alone_and_no_other_is_sent_twice(
    broker_url: str, queues: list[Queue], row: dict[str, Any]
) -> None:
    good, bad = jobs(MANY), jobs(5, **row)
    with outbox(app_of(broker_url, task_queues=[Queue("celery"), *queues])) as ours:
        told = ours.publish([*good[:20], *bad, *good[20:]])

    assert ({each.id for each in bad}, []) == ({refusal.job for refusal in told.refused}, told.unsent)
    assert all("NOT_FOUND - no exchange 'nowhere'" in refusal.reason for refusal in told.refused)
    assert all(refusal.reason.startswith("refused by the broker: NotFound: ") for refusal in told.refused)
    assert (MANY, MANY) == (ours.rendered, broker.depth(broker_url))


@rabbitmq
def test_a_queue_that_rabbitmq_refuses_affects_only_its_own_messages(
    broker_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Connection(broker_url) as connection:
        Queue("odd", durable=False, channel=connection.default_channel).declare()
    good, bad = jobs(5), jobs(5, queue="odd")
    with outbox(app_of(broker_url)) as ours:
        first = ours.publish([*good, *bad])
        second = ours.publish(jobs(5))

    assert set(ids(good)) == set(sent(first))
    assert set(ids(bad)) == {refusal.job for refusal in first.refused}
    assert all("PRECONDITION_FAILED" in refusal.reason for refusal in first.refused)
    assert 5 == len(second.sent)
    assert ours.rendered in (5, 10)  # the good ones too, if they were sent before the refusal came
    assert 1 == caplog.text.count("Nothing can be rendered now")


def test_a_key_that_redis_cannot_push_to_affects_only_its_own_messages(broker_url: str) -> None:
    with redis.Redis.from_url(broker_url) as client:
        client.set("odd", "no list")
    good, bad = jobs(MANY), jobs(5, queue="odd")
    with outbox(app_of(broker_url)) as ours:
        told = until_settled(ours, [*bad, *good])

    assert {each.id for each in bad} == {refusal.job for refusal in told.refused}
    assert {each.id for each in good} <= set(sent(told))
    assert MANY == broker.depth(broker_url)


@both_brokers
def test_nothing_is_written_after_the_lease(broker_url: str) -> None:
    given = jobs(MANY)
    with outbox(app_of(broker_url)) as ours:
        told = ours.publish(given, lease=0)

    assert ids(given) == told.unsent
    assert [] == taken_from(broker_url)


@both_brokers
def test_nothing_is_written_after_a_stop(broker_url: str) -> None:
    given = jobs(MANY)
    with outbox(app_of(broker_url)) as ours:
        ours.stopping = True
        told = ours.publish(given)

    assert ids(given) == told.unsent
    assert [] == taken_from(broker_url)


@both_brokers
def test_one_write_holds_no_more_messages_than_a_kill_may_repeat(
    broker_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    send = MessageBatch.send
    monkeypatch.setattr(MessageBatch, "send", lambda parcel: written.append(len(parcel.jobs)) or send(parcel))
    with outbox(app_of(broker_url)) as ours:
        told = ours.publish(jobs(2 * BATCH + 50))

    assert [BATCH, BATCH, 50] == written
    assert 2 * BATCH + 50 == len(told.sent)


def wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what is rendered differ from Celery's own by one character."""
    monkeypatch.setattr(body, "instant_text", lambda instant: instant.isoformat().replace("T", " "))


@both_brokers
def test_a_template_that_differs_from_celerys_message_is_not_used_and_is_logged_once(
    broker_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wrong(monkeypatch)
    with outbox(app_of(broker_url)) as ours:
        ours.publish(jobs(5))
        ours.publish(jobs(5))
        ours.broker.close()
        told = ours.publish(jobs(5))

    assert (0, 5) == (ours.rendered, len(told.sent))
    assert 15 == broker.depth(broker_url)
    assert 1 == caplog.text.count("Messages of 'shop.probe' are left to Celery: what was rendered differs")


@both_brokers
def test_a_task_that_is_registered_again_gets_a_new_template(broker_url: str) -> None:
    app = app_of(broker_url)
    with outbox(app) as ours:
        ours.publish(jobs(5))

        def probe(number: int, a: str) -> None: ...

        app.task(name="shop.probe", shared=False, ignore_result=True)(probe)
        told = ours.publish(jobs(5))

    assert 10 == ours.rendered
    assert 5 == len(told.sent)
    ignored = [bool(message.headers["ignore_result"]) for message in broker.drain(broker_url)]
    assert [False] * 5 + [True] * 5 == ignored


@both_brokers
def test_changed_routes_take_effect(broker_url: str) -> None:
    app = app_of(broker_url)
    with outbox(app) as ours:
        ours.publish(jobs(5))
        app.conf.update(task_routes={"shop.*": "reports"})
        ours.publish(jobs(5))

    assert 10 == ours.rendered
    assert (5, 5) == (broker.depth(broker_url), broker.depth(broker_url, "reports"))


@both_brokers
def test_the_first_few_messages_are_sent_by_celery_before_a_template_is_built(broker_url: str) -> None:
    with outbox(app_of(broker_url)) as ours:
        for _ in range(5):
            ours.publish(jobs(1))

    assert 2 == ours.rendered
    assert 5 == broker.depth(broker_url)


@both_brokers
def test_the_log_has_one_line_for_each_of_a_few_messages_and_one_line_for_many(
    broker_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "celery.beat")
    with outbox(app_of(broker_url)) as ours:
        ours.publish(jobs(5))
        few = [record.getMessage() for record in caplog.records]
        caplog.clear()
        ours.publish(jobs(MANY))

    assert [f"Scheduler: Sending due task row-{n} (shop.probe)" for n in range(5)] == few
    assert [f"Scheduler: Sending {MANY} due tasks (shop.probe: {MANY})"] == [
        record.getMessage() for record in caplog.records
    ]


# Together: made by Celery, written at once by kombu.


def by_arguments(_name: str, _args: Any, _kwargs: Any, _options: Any, **_: Any) -> dict[str, str]:
    return {"queue": "celery"}


@pytest.fixture
def together(door: Proxy) -> Iterator[Outbox]:
    """An outbox with a router that prevents rendering."""
    app = app_of(door.url, task_routes=(by_arguments,), broker_transport_options={"socket_timeout": 2})
    with outbox(app) as made:
        made.publish(jobs(1))
        if not getattr(made.broker.producer, "supports_batch_publish", False):
            pytest.skip("this kombu has no batches")
        yield made


def test_messages_that_only_celery_can_build_are_written_in_one_batch(
    together: Outbox, broker_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, depths = jobs(MANY), []
    apply = together.publisher._applied
    monkeypatch.setattr(
        together.publisher, "_applied", lambda *args: depths.append(broker.depth(broker_url)) or apply(*args)
    )

    told = together.publish(given)

    assert [1] * MANY == depths  # nothing is there until all is
    assert (0, ids(given)) == (together.rendered, sent(told))
    assert MANY + 1 == broker.depth(broker_url)


def test_messages_of_one_write_are_all_unknown_if_the_connection_breaks(together: Outbox, door: Proxy) -> None:
    given = jobs(MANY)
    door.cut_after = 9000

    told = together.publish(given)

    assert ([], [], ids(given)) == (told.sent, told.refused, told.unsent)
    again = until_settled(together, given)
    assert (set(ids(given)), []) == (set(ids(given)) & set(sent(again)), again.refused)


def test_only_the_message_of_a_batch_that_cannot_be_built_is_refused(together: Outbox, broker_url: str) -> None:
    given, bad = jobs(MANY), job(options={"countdown": 1e300})
    told = together.publish([*given, bad])

    assert ids(given) == sent(told)
    assert [bad.id] == [refusal.job for refusal in told.refused]
    assert MANY + 1 == broker.depth(broker_url)


def test_a_batch_that_celery_builds_is_not_written_after_the_lease(
    together: Outbox, broker_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = jobs(MANY)
    apply = together.publisher._applied
    monkeypatch.setattr(together.publisher, "_applied", lambda *args: time.sleep(0.02) or apply(*args))

    told = together.publish(given, lease=0.2)

    assert ids(given) == told.unsent
    assert 1 == broker.depth(broker_url)


def test_a_stop_while_celery_builds_a_batch_writes_the_messages_built_so_far(
    together: Outbox, broker_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = jobs(MANY)
    apply = together.publisher._applied

    def stopping_at_ten(job: OutgoingJob, answer: Published) -> Any:
        together.stopping = job.id == given[9].id
        return apply(job, answer)

    monkeypatch.setattr(together.publisher, "_applied", stopping_at_ten)

    told = together.publish(given)

    assert (ids(given[:10]), ids(given[10:])) == (sent(told), told.unsent)
    assert 11 == broker.depth(broker_url)


def test_after_redis_refused_part_of_a_batch_messages_are_written_one_by_one(together: Outbox, broker_url: str) -> None:
    odd = {"task_routes": (lambda _name, args, *_, **__: {"queue": "odd" if args == [3] else "celery"},)}
    together.publisher._sender.app.conf.update(**odd)
    together.publish(jobs(MANY))
    with redis.Redis.from_url(broker_url) as client:
        client.flushdb()
        client.set("odd", "no list any more")
    given = jobs(MANY)

    told = together.publish(given)

    assert ids(given) == told.unsent
    assert MANY - 1 == broker.depth(broker_url)  # kombu does not report which of them Redis accepted
    assert [given[3].id] == [refusal.job for refusal in until_settled(together, given).refused]
    assert not together.publisher._together


def test_a_handler_of_after_task_publish_finds_the_message_at_the_broker(together: Outbox, broker_url: str) -> None:
    depths = []

    def handle(**_: Any) -> None:
        depths.append(broker.depth(broker_url))

    signals.after_task_publish.connect(handle)
    try:
        together.publish(jobs(5))
    finally:
        signals.after_task_publish.disconnect(handle)

    assert [2, 3, 4, 5, 6] == depths
