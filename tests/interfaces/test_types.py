"""What a type checker says of the calls of an app."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import celery_pgbeat

ROOT = Path(celery_pgbeat.__file__).parents[1]

RIGHT = """
from datetime import timedelta

from celery_pgbeat import Columns, PgBeat, Timing, cron, every
from celery_pgbeat.choices import Overlap

beat = PgBeat("postgresql://localhost/shop")
careful: Columns = {"overlap": "skip", "catchup": "none", "tracking": "result", "on_lost": "rerun", "dst": "once"}
beat.schedule("a", "t", every(minutes=5), **careful)
row = beat.schedule("b", "t", cron(minute=0, hour=3), blackout_action="skip", max_run_time=timedelta(minutes=1))
beat.schedule("c", "t", "@daily", overlap=row.overlap, dst=row.dst)
running = [job for job in beat.jobs(state="running") if job.state == "running"]


def declare(overlap: Overlap) -> Timing:
    beat.schedule("d", "t", "@daily", overlap=overlap)
    return every("5m")


@beat.periodic_task(cron(minute="*/5", day_of_week="mon-fri"), overlap="allow")
def task() -> None: ...
"""
WRONG = """
from celery_pgbeat import Columns, PgBeat, cron, every

beat = PgBeat()
beat.schedule("a", "t", "@daily", overlap="skp")
beat.schedule("a", "t", "@daily", catchup="newest")
beat.schedule("a", "t", "@daily", tracking="half")
beat.schedule("a", "t", "@daily", on_lost="re-run")
beat.schedule("a", "t", "@daily", dst="twice")
beat.schedule("a", "t", "@daily", blackout_action="wait")
beat.periodic_task("@daily", overlap="skp")
careful: Columns = {"overlap": "skp"}
beat.jobs(state="runing")
beat.backfills(state="runing")
every("5m", minutes=5)
cron("0 3 * * *", hour=3)
cron(hours=3, minute=0)
"""


def checked(tmp_path: Path, text: str) -> list[tuple[int, str]]:
    """Return the errors of mypy, each with its line."""
    module = tmp_path / "shop.py"
    module.write_text(text)
    cache = tmp_path / "cache"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), "--config-file", "", str(module)],
        cwd=ROOT,
        env={"MYPYPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    found = re.findall(rf"^{re.escape(str(module))}:(\d+): error: (.*)", done.stdout, re.MULTILINE)
    return [(int(line), message) for line, message in found]


def test_a_type_checker_takes_right_calls_and_refuses_each_wrong_word(tmp_path: Path) -> None:
    assert [] == checked(tmp_path, RIGHT)

    wrong = checked(tmp_path, WRONG)
    lines = WRONG.splitlines()
    first = lines.index("beat = PgBeat()") + 1
    assert set(range(first + 1, len(lines) + 1)) == {line for line, _ in wrong}
