"""No statement of ours depends on JIT, whatever session it runs in.

Up to Postgres 17 a switched-off kind of plan adds 1e10 to the estimated cost where nothing else is possible. That
passes `jit_above_cost`, and compiling takes hundreds of milliseconds. The server of the wheel has no JIT, so these
tests need another one.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest

from celery_pgbeat.embedded import Postgres
from celery_pgbeat.postgres.engine import create_engine
from tests.harness.databases import migrate_database
from tests.harness.pgbouncer import PgBouncer
from tests.harness.session import Session

QUICK = 0.1  # seconds; compiling takes at least twice as long, everything else a twentieth


def with_jit() -> Path | None:
    """The programs of the newest installed Postgres that can compile."""
    libraries = sorted(Path("/usr/lib/postgresql").glob("*/lib/llvmjit.so"), key=lambda path: int(path.parts[4]))
    return libraries[-1].parents[1] / "bin" if libraries else None


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session of a distribution's Postgres with its defaults, beside the schema."""
    programs = with_jit()
    if programs is None:
        pytest.skip("no Postgres that can compile is installed below /usr/lib/postgresql")
    monkeypatch.setenv("PGBEAT_POSTGRES_BIN", str(programs))
    with Postgres(durable=False) as server:
        migrate_database(server.url)
        yield Session(server.url)


def seconds(say: Callable[[], object], times: int = 5) -> float:
    """How long it takes; the median, because other processes may take the machine for a moment."""
    taken = []
    for _ in range(times):
        begun = time.monotonic()
        say()
        taken.append(time.monotonic() - begun)
    return statistics.median(taken)


def test_every_function_that_bends_its_plan_switches_jit_off(migrated_database: str) -> None:
    bending = Session(migrated_database).rows(
        """
        select proname, array_to_string(proconfig, ' ') as settings from pg_proc
        where pronamespace = 'pgbeat'::regnamespace and array_to_string(proconfig, ' ') ~ 'enable_'
        """
    )

    assert len(bending) >= 10
    assert [] == [row["proname"] for row in bending if "jit=off" not in row["settings"].split()]


DECIDED = (
    "array[row('a', now(), now(), null, null, null, null, gen_random_uuid(), now(), now(), 'schedule', now(), now(),"
    " now(), 1, null, null)::pgbeat.decision]"
)
STATEMENTS = (
    "select pgbeat.promote_buffered(null)",
    "select pgbeat.grant_slots(1000)",
    "select pgbeat.settle_downstream(1000)",
    "select * from pgbeat.look(15, array[]::text[], '{}', '{}')",
    "select * from pgbeat.mark('beat', 15, 1000, 0, array[]::text[], '{}', '{}')",
    "select pgbeat.pause_is_due('a', now(), 3)",
    "select pgbeat.count_end('a', gen_random_uuid(), 'failed')",
    f"select * from pgbeat.submit('beat', 'UTC', 'full', true, true, 100, false, {DECIDED})",
    "select pgbeat.start(gen_random_uuid(), 0, 0, gen_random_uuid(), 'worker', 30, null)",
    "select * from pgbeat.start_spaced(gen_random_uuid(), 0, 0, gen_random_uuid(), 'worker', 30, null)",
    "select pgbeat.trigger('a', true); delete from pgbeat.active_job",
    "select * from pgbeat.status",
    "select * from pgbeat.overdue",
    "select pgbeat.explain('a')",
)


def test_nothing_is_compiled_in_a_session_of_any_client(compiling: Session) -> None:
    assert compiling.value("show jit") == "on"
    compiling.insert("a", overlap="buffer_all", pause_after_failures=3)

    taken = {statement: seconds(lambda statement=statement: compiling.rows(statement)) for statement in STATEMENTS}

    assert {} == {statement: time for statement, time in taken.items() if time > QUICK}


def test_the_clock_of_these_tests_sees_a_compilation(compiling: Session) -> None:
    """The control: the settings of `promote_first` without the one that switches JIT off."""
    compiling.rows("alter function pgbeat.promote_first reset jit")
    compiling.rows("alter function pgbeat.promote_first set enable_nestloop = off")
    compiling.rows("alter function pgbeat.promote_first set jit_above_cost = 0")
    compiling.rows("alter function pgbeat.promote_first set jit_inline_above_cost = 0")
    compiling.rows("alter function pgbeat.promote_first set jit_optimize_above_cost = 0")

    assert seconds(lambda: compiling.rows("select pgbeat.promote_buffered(null)")) > QUICK


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_a_connection_of_ours_has_jit_switched_off(migrated_database: str, driver: str) -> None:
    engine = create_engine(migrated_database.replace("postgresql://", f"postgresql+{driver}://"))
    with engine.connect() as connection:
        assert connection.exec_driver_sql("show jit").scalar_one() == "off"
    engine.dispose()


def test_behind_a_pooler_the_sessions_of_others_stay_as_they_are(pgbouncer: PgBouncer) -> None:
    engine = create_engine(pgbouncer.url)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("select 1").scalar_one() == 1
    with closing(psycopg2.connect(pgbouncer.url)) as other, other.cursor() as cursor:
        cursor.execute("show jit")
        assert cursor.fetchone() == ("on",)
    engine.dispose()
