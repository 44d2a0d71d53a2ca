"""Two versions of the code side by side: the later one's declaration is in force, and no row goes to and fro."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any

from tests.faults.conftest import Proof
from tests.faults.lengths import LEASE, MARKS, SECONDS, within
from tests.faults.load import INBOX, WORKS, Load, beats, now, paced, tapped, working
from tests.harness.account import Limits
from tests.harness.processes import Beat, Cluster
from tests.harness.rows import sql
from tests.harness.wait import eventually

pytestmark = MARKS

ROWS = 30
OF_EACH_KIND = 10
HEARTBEAT = 1  # seconds
DEAD_AFTER = 12  # seconds; a beat that is started again on a busy machine must write a heartbeat within them
OVERRULED = "Another declaration of code:probe is in force"

AUDIT = """
create table public.audit (
    at timestamptz not null default clock_timestamp(), name text, what text, enabled boolean, args jsonb);
create function public.audit() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        insert into public.audit (name, what) values (old.name, 'deleted');
    elsif tg_op = 'INSERT' then
        insert into public.audit (name, what, enabled, args) values (new.name, 'inserted', new.enabled, new.args);
    elsif (new.revision, new.enabled) <> (old.revision, old.enabled) then
        insert into public.audit (name, what, enabled, args) values (new.name, 'updated', new.enabled, new.args);
    end if;
    return null;
end $$;
create trigger audit after insert or update or delete on pgbeat.periodic_task
    for each row execute function public.audit();
"""


def entries(kind: str, version: int = 0) -> dict[str, Any]:
    """Some rows as a version of the code declares them, each due every two seconds."""
    return {
        f"{kind}-{number}": {"task": "app.probe", "schedule": 2, "args": [f"{kind}-{version}"]}
        for number in range(OF_EACH_KIND)
    }


OLDER = {"beat_schedule": {**entries("same"), **entries("changed", 1), **entries("old")}}
NEWER = {"beat_schedule": {**entries("same"), **entries("changed", 2), **entries("new")}}


def watched(cluster: Cluster) -> None:
    """Write down each change of a row's definition from now on."""
    cluster.settings = {"pgbeat_lease": LEASE, "pgbeat_heartbeat": HEARTBEAT, "pgbeat_dead_after": DEAD_AFTER}
    sql(cluster.database, AUDIT)


def edit(cluster: Cluster) -> None:
    """Change what an operator may: a pause, a bound and some words."""
    sql(cluster.database, "update pgbeat.periodic_task set subject = 'mine' where name ~ '^(same|changed|old)-[0-4]$'")
    sql(cluster.database, "select pgbeat.pause(name, 'stocktaking') from unnest(array['same-9', 'old-9']) as name")


def edited(cluster: Cluster) -> tuple[set[str], set[str]]:
    """Return the rows that still are as the operator left them: with his words, and with his pause."""
    rows = sql(cluster.database, "select name, subject, pause_reason from pgbeat.periodic_task")
    return (
        {row["name"] for row in rows if row["subject"] == "mine"},
        {row["name"] for row in rows if row["pause_reason"] == "stocktaking"},
    )


EDITED = (
    {f"{kind}-{number}" for kind in ("same", "changed", "old") for number in range(5)},
    {"same-9", "old-9"},
)


def changes(cluster: Cluster, since: datetime) -> dict[tuple[Any, ...], int]:
    """Count what happened to the rows of each kind since: what, whether it is enabled now, with which arguments.

    A row to which anything happened twice is shown by its name.
    """
    lines = sql(
        cluster.database, "select * from public.audit where at > %(since)s and name !~ '^row' order by at", since=since
    )
    often = Counter(line["name"] for line in lines)
    return dict(
        Counter(
            (
                line["name"] if often[line["name"]] > 1 else line["name"].partition("-")[0],
                line["what"],
                line["enabled"],
                *(line["args"] or ()),
            )
            for line in lines
        )
    )


ROLLED_OUT = {
    ("changed", "updated", True, "changed-2"): OF_EACH_KIND,
    ("old", "updated", False, "old-0"): OF_EACH_KIND - 1,  # one of them was paused already
    ("new", "inserted", True, "new-0"): OF_EACH_KIND,
}
ROLLED_BACK = {
    ("changed", "updated", True, "changed-1"): OF_EACH_KIND,
    ("old", "updated", True, "old-0"): OF_EACH_KIND - 1,
    ("new", "updated", False, "new-0"): OF_EACH_KIND,
}


def starts(running: list[Beat]) -> int:
    """Count how often these beats have begun to work."""
    return sum(beat.log.count(WORKS) for beat in running)


def test_restarting_beats_of_two_versions_neither_change_rows_back_and_forth_nor_delete_any(
    cluster: Cluster, proven: Proof, note: Callable[[str], None]
) -> None:
    watched(cluster)
    older = beats(cluster, 2, settings=OLDER)
    cluster.worker(queues="celery")
    edit(cluster)
    with tapped(cluster, INBOX, onward="celery") as tap:
        load = Load(cluster, ROWS, queue=f"'{INBOX}'")
        load.runs_for(1)
        deployed = now(load.url)
        newer = beats(cluster, 2, settings=NEWER)
        restarts = Counter[str]()
        for _ in paced(SECONDS, every=0.5):
            kind = min(("older", "newer"), key=lambda kind: restarts[kind])
            victim = random.choice(older if kind == "older" else newer)
            if all(beat.has_logged(WORKS) for beat in (*older, *newer)):
                victim.kill() if random.random() < 0.5 else victim.stop()
                victim.start(wait=False)
                restarts[kind] += 1
        for beat in (*older, *newer):
            working(beat)
        during = changes(cluster, deployed)
        for beat in older:  # the rest of the roll-out
            assert 0 == beat.stop()
        account = load.settle(tap, started=True)

    note(f"started again: {dict(restarts)}; what happened to rows: {during}")
    proven(account, Limits(doubled_sends=0.005, forgiven=2, late={100: within(LEASE + 2)}))
    assert ROLLED_OUT == during
    assert ROLLED_OUT == changes(cluster, deployed)
    assert EDITED == edited(cluster)
    # The control: beats of the older version did start beside the newer one, each with its mind made up to write.
    assert restarts["older"]
    assert starts(older) == 2 + restarts["older"]
    assert sum(beat.log.count(OVERRULED) for beat in older) >= restarts["older"]
    assert not any(OVERRULED in beat.log for beat in newer)


def test_after_the_newer_beats_end_the_older_declaration_is_in_force_again_and_edits_are_kept(
    cluster: Cluster, proven: Proof, note: Callable[[str], None]
) -> None:
    watched(cluster)
    older = beats(cluster, 2, settings=OLDER)
    cluster.worker(queues="celery")
    edit(cluster)
    with tapped(cluster, INBOX, onward="celery") as tap:
        load = Load(cluster, ROWS, queue=f"'{INBOX}'")
        newer = beats(cluster, 2, settings=NEWER)
        load.runs_for(1)
        gone = now(load.url)
        newer[0].kill()
        assert 0 == newer[1].stop()
        eventually(
            lambda: ROLLED_BACK == changes(cluster, gone), DEAD_AFTER + within(3 * HEARTBEAT), "rolled back", every=0.2
        )
        eventually(
            lambda: all(beat.has_logged("is in force again") for beat in older), within(3 * HEARTBEAT), "known to both"
        )
        after = sql(load.url, "select max(at) - %(gone)s as after from public.audit where name !~ '^row'", gone=gone)
        returned = now(load.url)
        beat = newer[0].start(wait=False)  # the next roll-forward: the version comes again
        working(beat)
        eventually(lambda: changes(cluster, returned), within(2 * HEARTBEAT), "in force again", every=0.2)
        account = load.settle(tap, started=True)

    note(f"rolled back after {after[0]['after'].total_seconds():.1f} s")
    proven(account, Limits(doubled_sends=0.005, forgiven=2, late={100: within(LEASE + 2)}))
    forward = {**ROLLED_OUT, ("new", "updated", True, "new-0"): OF_EACH_KIND}
    del forward["new", "inserted", True, "new-0"]
    assert forward == changes(cluster, returned)
    assert EDITED == edited(cluster)
    assert after[0]["after"].total_seconds() > DEAD_AFTER - 2 * HEARTBEAT - 1
