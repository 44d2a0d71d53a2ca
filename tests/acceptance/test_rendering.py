"""Rendered messages compared with Celery's: one app, the same jobs, once rendered and once sent one by one.

Everything is compared as the broker has it: Redis' keys and texts byte for byte, RabbitMQ's properties, headers
and bodies. Only the delivery tags of Redis, which are random, are blotted out.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
import redis
import wrapt
from celery import Celery, Task, signals
from celery.beat import BeatLazyFunc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kombu import Exchange, Producer, Queue
from kombu.common import Broadcast
from kombu.utils.imports import symbol_by_name
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from celery_pgbeat.beat.scheduler import Scheduler
from celery_pgbeat.beat.send.messages import OutgoingJob
from celery_pgbeat.beat.send.rendering.redis_writer import RedisWriter
from tests.harness.broker import both_brokers
from tests.harness.outbox import Code, app_of, job, jobs, outbox, taken_from

EXAMPLES = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
QUEUES = ("celery", "q2", "named", "wide", "first", "other", "reports", "urgent", "cast")


def both_ways(
    app: Celery, given: Sequence[OutgoingJob], queues: Sequence[str] = QUEUES
) -> tuple[int, list[Any], list[Any]]:
    """Return how many were rendered, what then lay at the broker, and what lies there when Celery sends the same."""
    broker = app.conf.broker_url
    with outbox(app, plainly=True) as plainly:
        told = plainly.publish(given)
        theirs = taken_from(broker, queues)
    with outbox(app) as ours:
        told_us = ours.publish(given)
        found = taken_from(broker, queues)
    assert ([], []) == (told.refused, told.unsent)
    assert sorted(told.sent) == sorted(told_us.sent)
    assert ([], []) == (told_us.refused, told_us.unsent)
    return ours.rendered, theirs, found


def in_order(found: Sequence[Any]) -> list[Any]:
    """Put what was sent in several goes into one order."""
    return sorted(found, key=repr)


# Settings and options of apps, tasks and rows, each alone or with others.

SETTINGS: dict[str, Any] = {
    "task_compression": "zlib",
    "task_default_priority": 3,
    "task_default_delivery_mode": "transient",
    "task_default_queue": "first",
    "task_routes": {"shop.probe": {"queue": "reports", "priority": 7}, "shop.*": "other"},
    "task_queue_max_priority": 9,
    "task_ignore_result": True,
    "task_time_limit": 60,
    "task_send_sent_event": False,
    "task_inherit_parent_priority": True,
    "task_publish_retry": True,
    "timezone": "America/New_York",
    "enable_utc": False,
    "task_queues": [Queue("celery"), Queue("q2", Exchange("x2", "direct"), routing_key="two", max_priority=5)],
    "broker_transport_options": {
        "global_keyprefix": "shop:",
        "priority_steps": [0, 2, 5],
        "sep": ":",
        "queue_order_strategy": "priority",
    },
}
OPTIONS: dict[str, Any] = {
    "expires": st.sampled_from([60, 90.5, 10**6]),
    "headers": st.sampled_from([{}, {"tenant": "x"}, {"deep": {"list": [1, 2.5, None, True]}, "ü%s": "%(id)s"}]),
    "time_limit": st.sampled_from([10, 2.5]),
    "soft_time_limit": st.just(2),
    "ignore_result": st.booleans(),
    "shadow": st.sampled_from(["other name", "100%"]),
    "argsrepr": st.just("(***)"),
    "kwargsrepr": st.just("{***}"),
    "reply_to": st.just("somebody"),
    "delivery_mode": st.sampled_from([1, 2]),
    "compression": st.sampled_from(["zlib", "bzip2"]),
    "serializer": st.just("json"),
    "routing_key": st.just("some.key"),
    "exchange_type": st.just("direct"),
    "MessageGroupId": st.just("g"),
}
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
    | st.just("x" * 1100),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "k'", "ü%"]), inner, max_size=3),
    max_leaves=6,
)
TYPED = {"__type__": "datetime", "__value__": "2026-12-07T12:00:00+00:00"}
ARGUMENTS = st.lists(VALUES | st.just(TYPED), max_size=3)
KEYWORDS = st.dictionaries(st.sampled_from(["box", "k'y", 'q"', "ä%(id)s"]), VALUES, max_size=2)
TASKS = ("by.name", "shop.probe", "shop.own")


def with_tasks(app: Celery) -> Celery:
    """Add tasks that decide for themselves."""

    @app.task(name="shop.probe", shared=False)
    def probe(*args: Any, **kwargs: Any) -> None: ...

    @app.task(
        name="shop.own",
        shared=False,
        bind=True,
        typing=False,
        priority=4,
        queue="q2",
        time_limit=30,
        soft_time_limit=20,
        compression="zlib",
        ignore_result=True,
        delivery_mode=1,
    )
    def own(self: Any) -> None: ...

    app.finalize()
    return app


ROWS = st.fixed_dictionaries(
    {
        "task": st.sampled_from(TASKS),
        "options": st.fixed_dictionaries({}, optional=OPTIONS),
        "queue": st.sampled_from([None, "q2", "urgent"]),
        "priority": st.sampled_from([None, 0, 3, 9]),
        "max_run_time": st.sampled_from([None, timedelta(minutes=1)]),
        "origin": st.sampled_from(["schedule", "manual"]),
        "run": st.integers(0, 2),
        "sensitive": st.booleans(),
    }
)


@pytest.mark.filterwarnings("ignore::celery.exceptions.CDeprecationWarning")
@both_brokers
@EXAMPLES
@given(
    chosen=st.sets(st.sampled_from(sorted(SETTINGS)), max_size=4),
    row=ROWS,
    calls=st.lists(
        st.tuples(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), ARGUMENTS, KEYWORDS),
        min_size=5,
        max_size=7,
    ),
)
def test_a_rendered_message_equals_celerys_to_the_last_byte(
    broker_url: str, chosen: set[str], row: dict[str, Any], calls: list[Any]
) -> None:
    app = with_tasks(app_of(broker_url, **{name: SETTINGS[name] for name in chosen}))
    given = [
        job(**row, periodic_task=name, args=json.dumps(args), kwargs=json.dumps(kwargs)) for name, args, kwargs in calls
    ]

    rendered, theirs, found = both_ways(app, given)

    assert theirs == found
    assert len(given) == len(found)
    assert len(given) == rendered


# What is not rendered, and why.


class OwnWay(Task):
    """A task that is sent in a way of its own."""

    abstract = True

    def apply_async(self, *args: Any, **kwargs: Any) -> Any:
        return super().apply_async(*args, **kwargs)


class OwnShadow(Task):
    """A task that names itself by its arguments."""

    abstract = True

    def shadow_name(self, args: Any, kwargs: Any, options: Any) -> str:
        return f"probe of {args}"


class OwnSending(Celery):
    """An app that sends in a way of its own."""

    def send_task(self, *args: Any, **kwargs: Any) -> Any:
        return super().send_task(*args, **kwargs)


class Wrapped(Scheduler):
    """A subclass that sees each entry."""

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        super().apply_entry(entry, producer=producer)


def register(app: Celery, **options: Any) -> Any:
    """Add a task `shop.probe`."""

    def probe(*args: Any, **kwargs: Any) -> None: ...

    task = app.task(name="shop.probe", shared=False, **options)(probe)
    app.finalize()
    return task


def by_arguments(name: str, args: Any, kwargs: Any, options: Any, task: Any = None, **_: Any) -> Any:
    """Route by the contents of a message."""
    return {"queue": "q2" if args == [1] else "other"}


SETTINGS_THAT_ARE_NOT_RENDERED: dict[str, dict[str, Any]] = {
    "a router that looks at the arguments": {"task_routes": (by_arguments,)},
    "an event for each message": {"task_send_sent_event": True},
    "protocol 1": {"task_protocol": 1},
    "a backend that declares a queue for the answers": {"result_backend": "rpc://"},
    "a queue that expires": {"task_queues": [Queue("celery", queue_arguments={"x-expires": 60_000})]},
    "a queue that is deleted with its consumer": {"task_queues": [Queue("celery", auto_delete=True)]},
}
OPTIONS_THAT_ARE_NOT_RENDERED: dict[str, dict[str, Any]] = {
    "kombu tries again": {"retry": True},
    "an end that is an instant": {"expires": "2031-01-01T00:00:00+00:00"},
}
SETTINGS_FOR_ONE_BROKER: dict[str, tuple[str, dict[str, Any]]] = {
    "redis writes again what had no answer": ("redis", {"broker_transport_options": {"retry_on_timeout": True}}),
    "redis looks up a topic": (
        "redis",
        {"task_queues": [Queue("celery", Exchange("wide", "topic"), routing_key="wide.#")]},
    ),
    "redis broadcasts": ("redis", {"task_queues": [Broadcast("cast")], "task_routes": {"shop.*": "cast"}}),
    "no confirms are wanted": ("amqp", {"broker_transport_options": {"confirm_publish": False}}),
}
OPTIONS_FOR_ONE_BROKER: dict[str, tuple[str, dict[str, Any]]] = {
    "redis looks up an exchange": ("redis", {"exchange": "named", "routing_key": "key"}),
    "rabbitmq may delay an eta": ("amqp", {"eta": "2030-01-01T12:00:00+00:00"}),
    "rabbitmq may delay a countdown": ("amqp", {"countdown": 5}),
    "a time limit for writing": ("amqp", {"timeout": 3}),
    "a message that is handed back": ("amqp", {"mandatory": True}),
}
if "confirm_timeout" in inspect.signature(Producer.publish).parameters:  # older ones take no notice of it
    OPTIONS_FOR_ONE_BROKER["a time limit for the confirm"] = ("amqp", {"confirm_timeout": 3})


def none_is_rendered(app: Celery, given: Sequence[OutgoingJob]) -> None:
    rendered, theirs, found = both_ways(app, given)

    assert 0 == rendered
    assert in_order(theirs) == in_order(found)


@both_brokers
@pytest.mark.parametrize("why", SETTINGS_THAT_ARE_NOT_RENDERED)
def test_settings_that_disable_rendering(broker_url: str, why: str) -> None:
    none_is_rendered(app_of(broker_url, **SETTINGS_THAT_ARE_NOT_RENDERED[why]), jobs(5))


@both_brokers
@pytest.mark.parametrize("why", OPTIONS_THAT_ARE_NOT_RENDERED)
def test_options_that_disable_rendering(broker_url: str, why: str) -> None:
    none_is_rendered(app_of(broker_url), jobs(5, options=OPTIONS_THAT_ARE_NOT_RENDERED[why]))


@pytest.mark.parametrize(
    ("broker_url", "settings"),
    [
        pytest.param(*values, id=why, marks=[pytest.mark.amqp] * (values[0] == "amqp"))
        for why, values in SETTINGS_FOR_ONE_BROKER.items()
    ],
    indirect=["broker_url"],
)
def test_settings_that_disable_rendering_for_one_broker(broker_url: str, settings: dict[str, Any]) -> None:
    none_is_rendered(app_of(broker_url, **settings), jobs(5))


@pytest.mark.parametrize(
    ("broker_url", "options"),
    [
        pytest.param(*values, id=why, marks=[pytest.mark.amqp] * (values[0] == "amqp"))
        for why, values in OPTIONS_FOR_ONE_BROKER.items()
    ],
    indirect=["broker_url"],
)
def test_options_that_disable_rendering_for_one_broker(broker_url: str, options: dict[str, Any]) -> None:
    none_is_rendered(app_of(broker_url), jobs(5, options=options))


@both_brokers
@pytest.mark.parametrize("base", [OwnWay, OwnShadow])
def test_a_task_that_overrides_sending_is_sent_by_its_own_method(broker_url: str, base: type[Task]) -> None:
    app = app_of(broker_url)
    register(app, base=base)

    none_is_rendered(app, jobs(5))


@both_brokers
def test_a_wrapped_apply_async_is_called(broker_url: str) -> None:
    app, called = app_of(broker_url), []
    task = register(app)
    original = task.apply_async
    task.apply_async = functools.wraps(original)(lambda *args, **kwargs: called.append(1) or original(*args, **kwargs))

    with outbox(app) as ours:
        ours.publish(jobs(5))

    assert (0, 5) == (ours.rendered, len(called))
    assert 5 == len(taken_from(broker_url))


@both_brokers
def test_an_overridden_send_task_is_called(broker_url: str) -> None:
    app = OwnSending("own", broker=broker_url, set_as_current=False)
    app.conf.pgbeat_url = "postgresql://127.0.0.1:1/nowhere"

    none_is_rendered(app, jobs(5))


@both_brokers
def test_a_wrapper_of_the_scheduler_gets_each_entry(broker_url: str) -> None:
    app = app_of(broker_url)
    with outbox(app, scheduler=Wrapped(app, lazy=True)) as ours:
        ours.publish(jobs(5))

    assert 0 == ours.rendered
    assert 5 == len(taken_from(broker_url))


def patched(path: str, monkeypatch: pytest.MonkeyPatch, way: str = "functools") -> list[tuple[Any, ...]]:
    """Wrap a method as tracers do, by `functools.wraps` or by wrapt; returns the arguments of its calls."""
    owner, _, name = path.rpartition(".")
    original = getattr(symbol_by_name(owner), name)
    calls: list[tuple[Any, ...]] = []

    def noting(wrapped: Any, _instance: Any, args: Any, kwargs: Any) -> Any:
        calls.append(args)
        return wrapped(*args, **kwargs)

    @functools.wraps(original)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        return noting(functools.partial(original, self), self, args, kwargs)

    monkeypatch.setattr(path, wrapt.FunctionWrapper(original, noting) if way == "wrapt" else wrapper)
    return calls


@both_brokers
@pytest.mark.parametrize("way", ["functools", "wrapt"])
@pytest.mark.parametrize(
    "path",
    [
        "celery.beat.Scheduler.apply_entry",
        "celery.beat.Scheduler.apply_async",
        "celery.app.base.Celery.send_task",
        "celery.app.task.Task.apply_async",
        "celery.app.amqp.AMQP.as_task_v2",
        "celery.app.routes.Router.route",
        "kombu.messaging.Producer.publish",
        "kombu.messaging.Producer._publish",
    ],
)
def test_a_patched_function_of_the_send_path_gets_each_call(
    broker_url: str, path: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = patched(path, monkeypatch, way)
    app = app_of(broker_url)
    register(app)
    with outbox(app) as ours:
        ours.publish(jobs(5))

    assert (0, 5) == (ours.rendered, len(calls))
    assert 5 == len(taken_from(broker_url))


@pytest.mark.parametrize("way", ["functools", "wrapt"])
@pytest.mark.parametrize(
    ("broker_url", "path"),
    [
        ("redis", "kombu.transport.redis.Channel._put"),
        ("redis", "kombu.transport.virtual.base.Channel.basic_publish"),
        pytest.param("amqp", "amqp.channel.Channel.basic_publish_confirm", marks=pytest.mark.amqp),
        pytest.param("amqp", "amqp.channel.Channel._basic_publish", marks=pytest.mark.amqp),
    ],
    indirect=["broker_url"],
)
def test_a_patched_function_of_a_transport_gets_each_call(
    broker_url: str, path: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = patched(path, monkeypatch, way)
    with outbox(app_of(broker_url)) as ours:
        ours.publish(jobs(5))

    assert (0, 5) == (ours.rendered, len(calls))
    assert 5 == len(taken_from(broker_url))


@pytest.mark.parametrize("way", ["functools", "wrapt"])
@pytest.mark.parametrize(
    ("path", "is_push"),
    [
        ("redis.Redis.execute_command", lambda call: call[0] == "LPUSH"),
        ("redis.Redis.lpush", lambda call: True),
    ],
)
def test_a_tool_that_wraps_the_commands_of_redis_sees_the_push(
    broker_url: str, path: str, is_push: Callable[[Any], bool], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = patched(path, monkeypatch, way)
    with outbox(app_of(broker_url)) as ours:
        ours.publish(jobs(5))

    assert (5, 1) == (ours.rendered, len(list(filter(is_push, calls))))
    assert 5 == len(taken_from(broker_url))


@pytest.mark.parametrize(
    ("settings", "size", "version", "pieces"),
    [
        ({}, 1, redis.VERSION, 0),
        ({"broker_transport_options": {"global_keyprefix": "shop:"}}, 1, redis.VERSION, 1),
        ({}, 300_000, redis.VERSION, 1),
        ({}, 1, (5, 2, 1), 1),
    ],
    ids=["all", "redis-py adds a prefix", "too large for one write", "an old redis-py"],
)
@pytest.mark.skipif(redis.VERSION < (5, 3), reason="this redis-py writes every push in pieces")
def test_a_batch_is_written_to_redis_in_one_piece(
    broker_url: str,
    settings: dict[str, Any],
    size: int,
    version: tuple[int, ...],
    pieces: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = patched("redis.connection.AbstractConnection.send_command", monkeypatch)
    with outbox(app_of(broker_url, **settings)) as ours:
        ours.publish(jobs(5))  # now kombu has connected, and checks the version no more
        monkeypatch.setattr(redis, "VERSION", version)
        calls.clear()
        told = ours.publish(jobs(5, args=json.dumps(["x" * size])))

    assert (10, 5) == (ours.rendered, len(told.sent))
    assert pieces == sum(call[0] == "LPUSH" for call in calls)  # which redis-py has packed


def test_the_metrics_of_redis_py_count_the_push(broker_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    observability = pytest.importorskip("redis.observability", reason="this redis-py has no metrics")
    monkeypatch.setattr("redis.observability.recorder._metrics_collector", None)
    monkeypatch.setattr("redis.observability.providers._observability_instance", None)
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])  # before a pool of an earlier test is collected, which asks for it
    monkeypatch.setattr("opentelemetry.metrics.get_meter_provider", lambda: provider)
    groups = [observability.MetricGroup.COMMAND]
    observability.get_observability_instance().init(observability.OTelConfig(metric_groups=groups))
    with outbox(app_of(broker_url)) as ours:
        ours.publish(jobs(5))

    counted = sum(
        point.count
        for kind in reader.get_metrics_data().resource_metrics
        for scope in kind.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
        if point.attributes["db.operation.name"] == "LPUSH"
    )
    assert (5, 1) == (ours.rendered, counted)


def test_after_a_push_that_redis_refuses_the_connection_serves_the_next(broker_url: str) -> None:
    with app_of(broker_url).connection() as connection:
        writer, taken = RedisWriter(connection), [None, None]
        pool = connection.default_channel.pool
        with writer.channel.conn_or_acquire() as client:
            client.set("refused", "no list")
            names = {client.client_id()}
            with pytest.raises(redis.ResponseError):
                writer.write("refused", ["a", "b"], taken)
            before = list(taken)
            writer.write("celery", ["a", "ü"], taken)
            names.add(client.client_id())
            pushed = client.lrange("celery", 0, -1)
            client.delete("refused", "celery")

    assert ([None, None], [True, True]) == (before, taken)
    assert (["ü".encode(), b"a"], 1) == (pushed, len(names))
    assert not pool._in_use_connections


def test_a_custom_channel_builds_its_own_messages(broker_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    channel = symbol_by_name("kombu.transport.redis.Channel")
    monkeypatch.setattr("kombu.transport.redis.Transport.Channel", type("Channel", (channel,), {}))

    none_is_rendered(app_of(broker_url), jobs(5))


@pytest.mark.amqp
@pytest.mark.parametrize("broker_url", ["amqp"], indirect=True)
def test_a_message_larger_than_a_frame_is_sent_alone(broker_url: str) -> None:
    large = job(kwargs=json.dumps({"a": 140_000 * "x"}))

    rendered, theirs, found = both_ways(app_of(broker_url), [*jobs(5), large])

    assert (5, 6) == (rendered, len(found))
    assert theirs == found


@pytest.fixture(params=["before_task_publish", "after_task_publish"])
def listening(request: pytest.FixtureRequest) -> Iterator[Callable[..., list[dict[str, Any]]]]:
    """Connect a receiver that adds a header, where it still can; return what it received."""
    signal = getattr(signals, request.param)
    received: list[dict[str, Any]] = []

    def receiver(sender: Any = None, headers: Any = None, **others: Any) -> None:
        received.append({"sender": sender, "id": headers["id"], **others})
        headers["heard"] = "yes"

    def connect(**to: Any) -> list[dict[str, Any]]:
        signal.connect(receiver, **to)
        return received

    yield connect
    signal.disconnect(receiver)
    signal.disconnect(receiver, sender="shop.other")


@both_brokers
def test_a_handler_of_a_publish_signal_gets_each_message_and_may_change_it(
    broker_url: str, listening: Callable[..., list[dict[str, Any]]]
) -> None:
    received, given = listening(), jobs(5)

    none_is_rendered(app_of(broker_url), given)

    assert 2 * [str(job.id) for job in given] == [each["id"] for each in received]


@both_brokers
def test_a_handler_of_another_tasks_signal_gets_nothing_and_changes_nothing(
    broker_url: str, listening: Callable[..., list[dict[str, Any]]]
) -> None:
    received = listening(sender="shop.other")

    rendered, theirs, found = both_ways(app_of(broker_url), jobs(5))

    assert (5, []) == (rendered, received)
    assert theirs == found


@both_brokers
def test_lazy_arguments_are_evaluated_when_the_message_is_sent(broker_url: str) -> None:
    code = Code()
    code.lazy["row-3"] = ([BeatLazyFunc(lambda: "made now")], {})
    with outbox(app_of(broker_url), code=code) as ours:
        told = ours.publish(jobs(6))

    assert (5, 6) == (ours.rendered, len(told.sent))
    assert 1 == len([found for found in taken_from(broker_url) if "made now" in repr(found)])


@both_brokers
def test_a_job_whose_arguments_do_not_fit_the_task_is_refused_with_the_error_of_celery(broker_url: str) -> None:
    app = app_of(broker_url)

    def probe(number: int) -> None: ...

    app.task(name="shop.probe", shared=False)(probe)
    app.finalize()
    good, bad = jobs(5, kwargs="{}"), job(periodic_task="bad", kwargs='{"no": "such"}')
    with outbox(app) as ours:
        told = ours.publish([*good, bad])

    assert 5 == ours.rendered
    assert [job.id for job in good] == [sent for sent, _ in told.sent]
    (refusal,) = told.refused
    assert bad.id == refusal.job
    said = "its message cannot be made: TypeError: probe() got an unexpected keyword argument 'no'"
    assert said == refusal.reason


def test_a_result_backend_does_not_prevent_rendering(broker_url: str) -> None:
    rendered, theirs, found = both_ways(app_of(broker_url, result_backend=broker_url), jobs(5))

    assert 5 == rendered
    assert theirs == found


def test_an_eager_app_runs_its_tasks_and_sends_nothing(broker_url: str) -> None:
    app, ran = app_of(broker_url, task_always_eager=True), []

    def probe(*args: Any, **kwargs: Any) -> None:
        ran.append(args)

    app.task(name="shop.probe", shared=False)(probe)
    app.finalize()
    with outbox(app) as ours:
        ours.publish(jobs(5))

    assert (0, 5) == (ours.rendered, len(ran))
    assert [] == taken_from(broker_url)


def test_other_transports_get_celerys_own_messages() -> None:
    app = app_of("memory://")
    with app.connection_for_write() as connection:
        connection.default_channel.queue_purge("celery")  # the queues of this transport belong to the process
    with outbox(app) as ours:
        told = ours.publish(jobs(5, queue="apart"))
        channel = ours.broker.producer.channel
        found = [channel.basic_get("apart", no_ack=True) for _ in range(5)]

    assert (0, 5) == (ours.rendered, len(told.sent))
    assert [{"a": f"b{n}"} for n in range(5)] == [message.payload[1] for message in found]


@pytest.mark.amqp
@pytest.mark.parametrize("broker_url", ["amqp"], indirect=True)
@pytest.mark.parametrize(
    "settings",
    [
        {"task_queues": [Queue("celery", Exchange("wide", "topic"), routing_key="wide.key")]},
        {
            "task_queues": [
                Queue("celery", Exchange("named", "direct"), routing_key="key", queue_arguments={"x-max-length": 9})
            ]
        },
        {"task_queues": [Queue("celery", Exchange("all", "fanout"))]},
        {"task_default_queue_type": "quorum"},
    ],
    ids=["topic", "direct", "fanout", "quorum"],
)
def test_exchanges_and_queues_of_rabbitmq_are_declared_and_reached(broker_url: str, settings: dict[str, Any]) -> None:
    rendered, theirs, found = both_ways(app_of(broker_url, **settings), jobs(5))

    assert (5, 5) == (rendered, len(found))
    assert theirs == found
