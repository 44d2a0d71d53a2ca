"""docs/schedules.md and docs/schedule-reference.md: the Python runs, and the tables say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import parse
from celery_pgbeat.schedules.registry import KINDS

PAGE = Path(__file__).parents[3] / "docs" / "schedules.md"
TEXT = PAGE.read_text(encoding="utf-8")
REFERENCE = PAGE.with_name("schedule-reference.md").read_text(encoding="utf-8")


PROSE = re.sub(r"```.*?```", "", TEXT + REFERENCE, flags=re.DOTALL)

SECTIONS = [
    ("cron", {"cron", "crontab"}, 20),
    ("Intervals", {"interval"}, 7),
    ("ISO 8601", {"iso", "once"}, 8),
    ("Recurrence rules", {"rrule"}, 1),
    ("Calendar events", {"calendar"}, 9),
    ("Solar events", {"solar"}, 0),
]


def quoted(title: str) -> list[str]:
    """Return what stands between back-ticks in a section."""
    section = PROSE.split(f"# {title}\n", 1)[1].split("\n#", 1)[0]
    return re.findall(r"`([^`]+)`", section)


def test_each_kind_of_the_registry_has_a_section() -> None:
    assert {kind.name for kind in KINDS.all} == {kind for _, named, _ in SECTIONS for kind in named}


def test_the_python_blocks_run_one_after_the_other():
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)  # our own page

    assert "windows" in names


@pytest.mark.parametrize(("title", "kinds", "at_least"), SECTIONS)
def test_the_examples_of_a_kind_are_schedules_of_that_kind(title, kinds, at_least):
    found = 0
    for text in quoted(title):
        try:
            found += parse(text).kind in kinds
        except InvalidSchedule:
            continue

    assert found >= at_least


@pytest.mark.parametrize(
    "text",
    [
        *(
            "0 25 * * *",
            "*/0 * * * *",
            "0 0",
            "0 0 30 2 *",
            "0 0 */30 2 mon#2",
            "@reboot",
            "0 0 12 ? * 2-6",
            "1,,2 * * * *",
        ),
        *("every 0s", "every 2 months", "P101Y", "R0/PT1H", "2027-02-29", "20/4:00", "RRULE:FREQ=DAILY;BYHOUR=24"),
        *("nonsense", "0 0 * * *\0", "CRON_TZ=Mars 0 0 * * *"),
    ],
)
def test_a_refusal_is_in_the_table(text):
    with pytest.raises(InvalidSchedule) as refused:
        parse(text)
    patterns = [re.sub(r"\\\{.*?\\\}|\\\.\\\.\\\.", ".+", re.escape(reason)) for reason in quoted("Refusals")]

    assert any(re.match(pattern, refused.value.reason) for pattern in patterns if len(pattern) > 8)
