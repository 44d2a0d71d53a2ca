"""Jobs in, parcels for the broker out; what cannot be rendered exactly is handed back, to go Celery's own way."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from celery_pgbeat.beat.messages import Job
from celery_pgbeat.beat.rendering.amqp_press import AmqpPress
from celery_pgbeat.beat.rendering.content import Moment
from celery_pgbeat.beat.rendering.genuine import Way, is_listened_to, way
from celery_pgbeat.beat.rendering.press import Press
from celery_pgbeat.beat.rendering.recording import Inexact
from celery_pgbeat.beat.rendering.redis_press import RedisPress
from celery_pgbeat.beat.rendering.shape import Shape, Unlike, key_of, learn

if TYPE_CHECKING:
    from celery_pgbeat.beat.broker import Sender

logger = logging.getLogger(__name__)

WORTH_LEARNING = 4  # jobs of one shape; to learn it costs as much as two messages do
SHAPES = 1000  # that are remembered


@dataclass(slots=True)
class Parcel:
    """Messages that are written to the broker at once.

    Attributes:
        taken: for each job whether the broker has taken its message; None while nobody knows.
    """

    press: Press
    place: str
    jobs: list[Job] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)
    taken: list[bool | None] = field(default_factory=list)

    def add(self, job: Job, delay: float, message: Any) -> None:
        """Put one more in."""
        self.jobs.append(job)
        self.delays.append(delay)
        self.messages.append(message)
        self.taken.append(None)

    def send(self) -> None:
        """Write them, and wait for the broker's answers."""
        self.press.write(self.place, self.messages, self.taken)


class Renderer:
    """Renders for one beat; each connection has a press of its own, and shapes are learnt anew for it.

    Any thread may connect, one thread renders: a new connection is noted, and taken up with the next rendering.
    """

    def __init__(self, sender: Sender, is_lazy: Callable[[str], bool]) -> None:
        self._sender = sender
        self._is_lazy = is_lazy
        self._connected: tuple[Any, Press | None] = (None, None)  # a producer and its press
        self._producer: Any = None  # the one for which the shapes were learnt
        self._way: Way | None = None
        self._shapes: OrderedDict[Hashable, Shape | Exception | int] = OrderedDict()

    def connect(self, producer: Any) -> None:
        """Render for this connection from now on."""
        self._connected = (producer, _press_for(producer.connection))

    def render(self, jobs: Sequence[Job], now: datetime) -> tuple[list[Parcel], list[Job]]:
        """Return what to write, and the jobs that go the plain way.

        Raises:
            Exception: the connection is lost, or the broker refuses a queue.
        """
        press = self._taken_up()
        current = None if press is None else way(self._sender)
        if press is None or current is None:
            return [], list(jobs)
        if current != self._way:
            self._way = current
            self._shapes.clear()
        moment = Moment(now, self._sender.app.now().astimezone(timezone.utc))
        plain: list[Job] = []
        keyed: list[tuple[Hashable, Job]] = []
        for job in jobs:
            if self._is_lazy(job.periodic_task):
                plain.append(job)
            else:
                keyed.append((key_of(job), job))
        shapes = self._shapes_of(keyed, press, current, moment)
        parcels: dict[str, Parcel] = {}
        for key, job in keyed:
            shape = shapes[key]
            if shape is None:
                plain.append(job)
                continue
            try:
                message = shape.render(job, moment)
            except Exception:  # noqa: BLE001  the plain way will say what is wrong with it
                plain.append(job)
                continue
            place = shape.template.place
            if place not in parcels:
                parcels[place] = Parcel(press, place)
            parcels[place].add(job, shape.content.delay(moment), message)
        return list(parcels.values()), plain

    def _taken_up(self) -> Press | None:
        """Return the press of the connection there is; what was learnt for another one is forgotten."""
        producer, press = self._connected
        if producer is not self._producer:
            self._producer = producer
            for key, known in list(self._shapes.items()):
                if isinstance(known, Shape):
                    del self._shapes[key]
        return press

    def _shapes_of(
        self, keyed: Sequence[tuple[Hashable, Job]], press: Press, current: Way, moment: Moment
    ) -> dict[Hashable, Shape | None]:
        """Return the shapes that can be used now, each with its queues declared."""
        counts = Counter(key for key, _ in keyed)
        shapes: dict[Hashable, Shape | None] = {}
        declared: set[int] = set()
        for key, job in dict(reversed(keyed)).items():  # the first job of each shape
            if is_listened_to(job.task):  # before anything is learnt: that makes messages which nobody gets
                shapes[key] = None
                continue
            shape = self._known(key, job, counts[key], press, current, moment)
            shapes[key] = shape
            for entity in () if shape is None else shape.declared:
                if id(entity) not in declared:
                    declared.add(id(entity))
                    self._declare(key, entity)
        return shapes

    def _declare(self, key: Hashable, entity: Any) -> None:
        try:
            self._producer.maybe_declare(entity)
        except Exception as error:
            if isinstance(error, tuple(self._producer.connection.channel_errors)):
                self._shapes[key] = Inexact("the broker refuses its queue")
            raise

    def _known(self, key: Hashable, job: Job, count: int, press: Press, current: Way, moment: Moment) -> Shape | None:
        """Return a shape, learnt now if there have been enough of it."""
        known = self._shapes.get(key, 0)
        if isinstance(known, Shape) and known.task is not self._sender.app.tasks.get(job.task):
            known = WORTH_LEARNING
        if isinstance(known, int):
            known += count
            if known >= WORTH_LEARNING:
                known = self._learnt(job, press, current, moment) or 0
            self._shapes[key] = known
        self._shapes.move_to_end(key)
        if len(self._shapes) > SHAPES:
            self._shapes.popitem(last=False)
        return known if isinstance(known, Shape) else None

    def _learnt(self, job: Job, press: Press, current: Way, moment: Moment) -> Shape | Exception | None:
        try:
            return learn(self._sender, press, current, job, moment)
        except Inexact as error:
            return error
        except Unlike as error:
            logger.warning(
                "Messages of %r are left to Celery: %s. Please report it with the versions of celery and kombu",
                job.task,
                error,
                extra={"action": "publish"},
            )
            return error
        except Exception:
            logger.debug(
                "The shape of %r was not learnt from %r", job.task, job.periodic_task, exc_info=not job.sensitive
            )
            return None


def _press_for(connection: Any) -> Press | None:
    kind = connection.transport.driver_type
    if kind == "redis" and RedisPress.fits(connection):
        return RedisPress(connection)
    if kind == "amqp" and AmqpPress.fits(connection):
        return AmqpPress(connection)
    return None
