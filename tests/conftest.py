"""Servers, databases and processes for the tests.

Servers come from the environment (PGBEAT_TEST_DATABASE_URL, PGBEAT_TEST_REDIS_URL, PGBEAT_TEST_AMQP_URL), else private
ones are started, one of each kind for each pytest-xdist worker. A missing one skips the test, unless
PGBEAT_TEST_REQUIRE (`amqp,redis,postgres`) names it: then the test fails.

A given Postgres needs a user who may create databases, a given RabbitMQ its management interface on port 15672. Of a
given Redis the database in the URL and as many after it as there are workers are emptied.
"""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import hypothesis
import pytest
import redis

from celery_pgbeat.api import PgBeat
from celery_pgbeat.embedded import Postgres, Server, ServerUnavailable, Valkey
from celery_pgbeat.embedded.databases import create_database, drop_database
from celery_pgbeat.embedded.postgres import find_binaries
from celery_pgbeat.embedded.valkey import find_binary
from celery_pgbeat.postgres.beat_queries import BeatQueries
from tests.harness import ticks
from tests.harness.clock import Clock
from tests.harness.databases import copy_database, migrate_database
from tests.harness.kits import MakeKit, kits_on
from tests.harness.management import Management
from tests.harness.pgbouncer import PgBouncer
from tests.harness.probe import Probe
from tests.harness.processes import Cluster
from tests.harness.rabbitmq import RabbitMQ
from tests.harness.role import Role
from tests.harness.servers import POSTGRES_OPTIONS, missing
from tests.harness.session import Session
from tests.harness.shell import Run, shell_on
from tests.harness.situations import Situation

# Commands show times in the zone of the machine; processes that a test starts inherit it.
os.environ["TZ"] = "UTC"
time.tzset()

# How long one example takes, or is drawn, depends more on what else the machine does than on the product.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

REDIS_DATABASES = 512  # of the private server

_CLUSTER = pytest.StashKey[Cluster]()
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def unique_name(worker_id: str) -> Callable[[], str]:
    """Make names that no other test has, in whatever worker or run."""
    return lambda: f"pgbeat_{worker_id}_{os.getpid()}_{next(_numbers)}"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server on which databases may be made. Not to be restarted: see `own_postgres`."""
    given = os.environ.get("PGBEAT_TEST_DATABASE_URL")
    if given:
        yield given
        return
    server = Postgres(durable=False, options=POSTGRES_OPTIONS)
    try:
        server.start()
    except ServerUnavailable as error:
        missing("postgres", str(error))
    yield server.url
    server.stop()


@pytest.fixture
def database(postgres_server: str, unique_name: Callable[[], str]) -> Iterator[str]:
    """The URL of an empty database of this test's own."""
    name = unique_name()
    yield create_database(postgres_server, name)
    drop_database(postgres_server, name)


@pytest.fixture(scope="session")
def migrated_template(postgres_server: str, unique_name: Callable[[], str]) -> Iterator[str]:
    """The name of a database with the schema `pgbeat`, to be copied: that is faster than to migrate each time."""
    name = unique_name()
    migrate_database(create_database(postgres_server, name))
    yield name
    drop_database(postgres_server, name)


@pytest.fixture
def migrated_database(postgres_server: str, migrated_template: str, unique_name: Callable[[], str]) -> Iterator[str]:
    """The URL of a database of this test's own with the schema `pgbeat`."""
    name = unique_name()
    yield copy_database(postgres_server, name, migrated_template)
    drop_database(postgres_server, name)


@pytest.fixture
def session(migrated_database: str) -> Session:
    """A plain client of `migrated_database`."""
    return Session(migrated_database)


@pytest.fixture
def store(migrated_database: str) -> Iterator[BeatQueries]:
    """The statements of a beat called `beat-a` on `migrated_database`."""
    made = ticks.beat(migrated_database)
    yield made
    made.database.close()


@pytest.fixture
def beat(migrated_database: str) -> Iterator[PgBeat]:
    """The Python API on `migrated_database`."""
    made = PgBeat(url=migrated_database)
    yield made
    made.close()


@pytest.fixture
def run(migrated_database: str) -> Run:
    """The shell on `migrated_database`."""
    return shell_on(migrated_database)


@pytest.fixture
def make_kit(migrated_database: str, monkeypatch: pytest.MonkeyPatch) -> MakeKit:
    """Make the test's kit, in `migrated_database`."""
    return kits_on(migrated_database, monkeypatch)


@pytest.fixture
def situation(migrated_database: str) -> Situation:
    """A database whose clock stands at noon, without a beat or a worker."""
    return Situation(migrated_database)


@pytest.fixture
def well(situation: Situation) -> Situation:
    """A beat and a worker with our tracker live."""
    situation.beat()
    situation.worker()
    return situation


@pytest.fixture(scope="module")
def shared_database(postgres_server: str, migrated_template: str, unique_name: Callable[[], str]) -> Iterator[str]:
    """The URL of a database with the schema `pgbeat` for all tests of a file, which must remove what they write."""
    name = unique_name()
    yield copy_database(postgres_server, name, migrated_template)
    drop_database(postgres_server, name)


@pytest.fixture
def database_clock(migrated_database: str) -> Clock:
    """The clock of `migrated_database`, to be set."""
    return Clock(migrated_database)


@pytest.fixture
def role(migrated_database: str, unique_name: Callable[[], str]) -> Iterator[Role]:
    """A user of `migrated_database` with no more rights than a beat and a worker need."""
    made = Role(migrated_database, unique_name())
    yield made
    made.drop()


@pytest.fixture
def pgbouncer(migrated_database: str, request: pytest.FixtureRequest) -> Iterator[PgBouncer]:
    """A pooler before `migrated_database`, in transaction mode unless a test asks for `session`."""
    mode = getattr(request, "param", "transaction")
    # In session mode each connection of each process holds one of the server's.
    server = PgBouncer(migrated_database, pool_size=4 if mode == "transaction" else 40, mode=mode)
    try:
        server.start()
    except ServerUnavailable as error:
        missing("pgbouncer", str(error))
    yield server
    server.stop()


@pytest.fixture
def probe(migrated_database: str) -> Probe:
    """The table of what ran, in `migrated_database`."""
    return Probe(migrated_database).create()


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A Postgres of this test's own, to be restarted, killed and frozen."""
    server = Postgres(durable=False, options=POSTGRES_OPTIONS)
    try:
        server.start()
    except ServerUnavailable as error:
        missing("postgres", str(error))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """The URL of a Redis-compatible server. Not to be restarted: see `own_redis`."""
    given = os.environ.get("PGBEAT_TEST_REDIS_URL")
    if given:
        yield given
        return
    server = Valkey(options={"databases": str(REDIS_DATABASES)})
    try:
        server.start()
    except ServerUnavailable as error:
        missing("redis", str(error))
    yield server.url
    server.stop()


@pytest.fixture
def redis_url(redis_server: str, worker_id: str) -> str:
    """The URL of an empty Redis database, that no other test uses at the same time."""
    number = next(_numbers) % REDIS_DATABASES
    if os.environ.get("PGBEAT_TEST_REDIS_URL"):  # shared by the workers, and it has 16 databases by default
        first = int(urlsplit(redis_server).path.strip("/") or 0)
        number = first + (0 if worker_id == "master" else int(worker_id.removeprefix("gw")))
    url = urlsplit(redis_server)._replace(path=f"/{number}").geturl()
    with redis.Redis.from_url(url) as client:
        client.flushdb()
    return url


@pytest.fixture
def own_redis() -> Iterator[Valkey]:
    """A Valkey of this test's own, to be restarted, killed and frozen; it keeps what it holds."""
    server = Valkey(appendonly=True)
    try:
        server.start()
    except ServerUnavailable as error:
        missing("redis", str(error))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def amqp_server() -> Iterator[Management]:
    """The management interface of a RabbitMQ, with which each test gets a virtual host."""
    given = os.environ.get("PGBEAT_TEST_AMQP_URL")
    if given:
        management = Management.beside(given)
        if not management.answers():
            missing("amqp", "the RabbitMQ of PGBEAT_TEST_AMQP_URL has no management interface on port 15672")
        yield management
        return
    server = RabbitMQ()
    try:
        server.start()
    except ServerUnavailable as error:
        missing("amqp", str(error))
    yield server.management
    server.stop()


@pytest.fixture
def own_amqp() -> Iterator[RabbitMQ]:
    """A RabbitMQ of this test's own, to be killed and frozen; it keeps what it has confirmed."""
    server = RabbitMQ()
    try:
        server.start()
    except ServerUnavailable as error:
        missing("amqp", str(error))
    yield server
    server.stop()


@pytest.fixture
def own_broker(request: pytest.FixtureRequest) -> Server:
    """A broker of this test's own, of the kind that it is parametrised with: `redis` or `amqp`."""
    server: Server = request.getfixturevalue(f"own_{request.param}")
    return server


@pytest.fixture
def amqp_url(amqp_server: Management, unique_name: Callable[[], str]) -> Iterator[str]:
    """The URL of a RabbitMQ virtual host of this test's own."""
    name = unique_name()
    yield amqp_server.create_vhost(name)
    amqp_server.delete_vhost(name)


@pytest.fixture
def broker_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty broker: Redis, or what `tests.harness.broker.both_brokers` parametrises."""
    kind = getattr(request, "param", "redis")
    return str(request.getfixturevalue(f"{kind}_url"))


@pytest.fixture
def cluster(
    request: pytest.FixtureRequest, tmp_path: Path, migrated_database: str, broker_url: str
) -> Iterator[Cluster]:
    """Real beats and workers on `migrated_database` and `broker_url`; whatever is left of them ends with the test.

    A test with servers of its own sets `cluster.database` and `cluster.broker` before it starts the first process.
    """
    made = Cluster(tmp_path, migrated_database, broker_url, forks=True)
    request.node.stash[_CLUSTER] = made
    yield made
    made.end()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what chooses the second layer: `testpaths` in pyproject.toml is the first one."""
    parser.addoption("--rest", action="store_true", help="of the given folders, only what is not in the core layer")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the core layer if asked for the rest."""
    core = (config.rootpath / path for path in config.getini("testpaths"))
    return True if config.getoption("rest") and collection_path in core else None


def pytest_collection_finish() -> None:
    """Take what is imported and collected out of the garbage collector's sight: it lives as long as the process."""
    gc.freeze()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Say which servers the tests will start."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    servers = {
        "Postgres": ("PGBEAT_TEST_DATABASE_URL", find_binaries),
        "Valkey": ("PGBEAT_TEST_REDIS_URL", find_binary),
        "RabbitMQ": ("PGBEAT_TEST_AMQP_URL", lambda: shutil.which("rabbitmq-server") or "not installed"),
    }
    reporter.write_line(f"{session.config.getoption('numprocesses', None) or 1} processes; each starts as needed:")
    for name, (variable, find) in servers.items():
        try:
            reporter.write_line(f"  {name}: {variable + ' is used' if variable in os.environ else find()}")
        except ServerUnavailable as error:
            reporter.write_line(f"  {name}: {error}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say in words what was run and what it showed."""
    failed = len(terminalreporter.stats.get("failed", [])) + len(terminalreporter.stats.get("error", []))
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.getreports("skipped"))
    skipped = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common())
    terminalreporter.write_line(
        ("Nothing failed." if not failed else f"{failed} failed: try each alone, with -n 0.")
        + (f" Skipped: {skipped}." if skipped else "")
        + (" This was the core layer; .ci/run runs the rest too." if config.args == config.getini("testpaths") else "")
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the ends of the processes' logs with a failed test."""
    report = yield
    if report.failed and _CLUSTER in item.stash:
        report.sections += item.stash[_CLUSTER].tails()
    return report
