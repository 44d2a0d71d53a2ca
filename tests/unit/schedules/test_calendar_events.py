"""systemd's calendar events: the vectors of the specification, and systemd itself as an oracle."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from datetime import datetime

import pytest

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import parse
from tests.harness.schedule_texts import UTC

SYSTEMD = shutil.which("systemd-analyze")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(  # D-31
    ("text", "base", "expected"),
    [
        ("*-*-* 9..22:0/10", "2020-03-08T08:41:06", ["2020-03-08T09:00", "2020-03-08T09:10", "2020-03-08T09:20"]),
        ("Mon *-*-* *:10,20,50:0", "2020-03-06T01:47:12", ["2020-03-09T00:10", "2020-03-09T00:20"]),
        ("*-2-* 10:00:00", "2024-03-20", ["2025-02-01T10:00", "2025-02-02T10:00"]),
        (
            "*-*-* 9..18/3:00",
            "2020-04-02T10:12:51",
            ["2020-04-02T12:00", "2020-04-02T15:00", "2020-04-02T18:00", "2020-04-03T09:00"],
        ),
        ("22:10 Europe/Berlin", "2022-02-28T21:05:15", ["2022-02-28T21:10"]),
        ("Mon *-*-* 02:00:00 Europe/Warsaw", "2025-03-27T12:00", ["2025-03-31T00:00"]),
        ("*-*~1", "2028-02-01", ["2028-02-29", "2028-03-31"]),
        ("Mon *-05~07/1", "2026-01-01", ["2026-05-25", "2027-05-31"]),
        ("*-*~6..10/3", "2024-01-01", ["2024-01-23", "2024-01-26", "2024-02-21"]),
        ("Sat *-*-1..7 18:00:00 Europe/Berlin", "2026-12-01", ["2026-12-05T17:00", "2027-01-02T17:00"]),
        ("quarterly", "2026-12-07", ["2027-01-01", "2027-04-01"]),
        ("weekly Europe/Berlin", "2026-12-07", ["2026-12-13T23:00"]),
        ("Fri", "2026-12-07", ["2026-12-11", "2026-12-18"]),
        ("*:*:0/0.25", "2026-12-07", ["2026-12-07T00:00:00.250000", "2026-12-07T00:00:00.500000"]),
        ("calendar: 2026-12-09", "2026-12-07", ["2026-12-09"]),
        ("70-1-1 00:00:00", "1969-12-01", ["1970-01-01"]),
        ("@1395716396", "2014-01-01", ["2014-03-25T02:59:56"]),
    ],
)
def test_a_calendar_event_elapses_at(text, base, expected):
    found = parse(text).occurrences(utc(base), limit=len(expected))

    assert [utc(moment) for moment in expected] == list(found)


def test_an_event_with_a_year_ends():  # D-31
    schedule = parse("2021-04-11 05:10,20,50:0")

    assert [10, 20, 50] == [found.minute for found in schedule.occurrences(utc("2020-03-08T01:47:12"))]
    assert parse("2018-11-11 *:10:0").next(utc("2020-03-08")) is None


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("mon..fri 9:00", "Mon..Fri *-*-* 09:00:00"),
        ("Monday,Tue, 1:1", "Mon,Tue *-*-* 01:01:00"),
        ("Sat-Sun", "Sat,Sun *-*-* 00:00:00"),
        ("hourly", "*-*-* *:00:00"),
        ("semi-annually uTc", "*-01,07-01 00:00:00 UTC"),
        ("*:2,1,2", "*-*-* *:01,02:00"),
        ("1..3/5:00", "*-*-* 01:00:00"),
        ("*:*:*", "*-*-* *:*:*"),
    ],
)
def test_the_canonical_text_is_that_of_systemd(text, canonical):
    assert canonical == parse(text).text


def component(chance: random.Random, low: int, high: int, star: float) -> str:
    if chance.random() < star:
        return "*"
    parts = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        text = str(chance.randint(low, high))
        if chance.random() < 0.25:
            text += f"..{chance.randint(low, high)}"
        if chance.random() < 0.25:
            text += f"/{chance.randint(1, max(2, (high - low) // 2))}"
        parts.append(text)
    return ",".join(parts)


def random_event(chance: random.Random) -> str:
    """Return a text in the shared subset.

    Lists after `~` are left out, systemd 252 refuses some of them by mistake. Asked at 23:59:59 it skips the first
    value of a repetition (`*:*:8/25` gives 00:00:33), so no base lies there.
    """
    text = ""
    if chance.random() < 0.4:
        first, last = chance.choice(("Mon", "Wed", "Fri")), chance.choice(("Wed", "Thu", "Sun"))
        text += chance.choice((f"{first} ", f"{first},{last} ", f"{first}..{last} "))
    if chance.random() < 0.8:
        if chance.random() < 0.3:
            text += component(chance, 2020, 2035, 0.8) + "-"
        text += component(chance, 1, 12, 0.6)
        text += chance.choice(("-" + component(chance, 1, 28, 0.3), f"~{chance.randint(1, 28)}")) + " "
    if chance.random() < 0.85 or not text:
        text += component(chance, 0, 23, 0.3) + ":" + component(chance, 0, 59, 0.3)
        if chance.random() < 0.4:
            text += ":" + component(chance, 0, 59, 0.2)
    zones = ("", " UTC", " Europe/Berlin", " America/New_York", " Australia/Lord_Howe", " Africa/Casablanca")
    return text.strip() + chance.choice(zones)


def ask_systemd(texts: list[str], base: datetime) -> tuple[list[tuple[str, list[datetime]]], str]:
    """Return for each text its canonical form and five times, and what systemd complained about."""
    assert SYSTEMD is not None
    answer = subprocess.run(
        [SYSTEMD, "calendar", "--iterations=5", f"--base-time={base:%Y-%m-%d %H:%M:%S} UTC", *texts],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TZ": "UTC", "LC_ALL": "C"},
    )
    found = []
    for block in filter(None, map(str.strip, answer.stdout.split("\n\n"))):
        form = re.search(r"Normalized form: (.*)", block) or re.search(r"Original form: (.*)", block)
        times = re.findall(r"(?:Next elapse|Iter(?:\.|ation) #\d+): \w+ (\S+ \S+) UTC", block)
        found.append((form.group(1) if form else "", [utc(text) for text in times]))
    return found, answer.stderr


@pytest.mark.skipif(SYSTEMD is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("base", ["2026-03-28T12:00", "2026-10-24T12:00", "2028-02-11T16:18"])  # D-31: 2,100 events
def test_systemd_gives_the_same_times_and_the_same_canonical_text(base):
    chance, schedules = random.Random(base), {}
    while len(schedules) < 700:
        text = random_event(chance)
        try:
            schedules[text] = parse(text)
        except InvalidSchedule:
            continue
    texts = [text for text, schedule in schedules.items() if schedule.kind == "calendar"]
    for start in range(0, len(texts), 100):
        some = texts[start : start + 100]
        answers, complaints = ask_systemd(some, utc(base))
        if "deadlock" in complaints:  # systemd 252 gives up on some year ranges that are over
            some = [text for text in some if text not in complaints]
        assert len(answers) == len(some), complaints
        for text, (form, times) in zip(some, answers, strict=True):
            assert form == schedules[text].text
            assert times == list(schedules[text].occurrences(utc(base), limit=5)), text


@pytest.mark.skipif(SYSTEMD is None, reason="systemd-analyze is not installed")
def test_what_is_refused_here_is_refused_by_systemd_or_never_elapses():
    chance, base, refused = random.Random("refused"), utc("2026-12-07"), []
    while len(refused) < 60:
        text = random_event(chance)
        try:
            parse(text)
        except InvalidSchedule:
            refused.append(text)
    for text in refused:
        answers, complaints = ask_systemd([text], base)
        assert "Failed" in complaints or answers[0][1] == [], text
