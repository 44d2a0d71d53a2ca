"""Texts of schedules for hypothesis, zones that are hard, and a slow reference for cron around DST."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from celery_pgbeat.schedules import Schedule

UTC = timezone.utc
TICK = timedelta(microseconds=1)
ZONES = (
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Europe/Dublin",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Pacific/Apia",
    "America/Sao_Paulo",
    "Asia/Beirut",
    "Antarctica/Troll",
    "Pacific/Chatham",
    "America/Havana",
    "Asia/Kolkata",
)
# Instants close to which a clock of one of these zones leaps.
LEAPS = tuple(
    datetime.fromisoformat(text).replace(tzinfo=UTC)
    for text in (
        "2026-03-08T07:00",
        "2026-11-01T06:00",
        "2026-03-29T01:00",
        "2026-10-25T01:00",
        "2026-10-03T15:30",
        "2026-04-04T15:00",
        "2026-02-15T02:00",
        "2026-03-22T02:00",
        "2011-12-30T10:00",
        "2018-11-04T03:00",
        "2018-02-18T02:00",
        "2026-03-28T22:00",
        "2026-04-04T14:45",
        "2026-11-01T05:00",
        "2026-12-31T23:30",
    )
)
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

zones = st.sampled_from(ZONES)
dsts = st.sampled_from(("default", "default", "skip", "once", "all"))
instants = st.one_of(
    st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)).map(lambda naive: naive.replace(tzinfo=UTC)),
    st.builds(
        lambda leap, minutes: leap + timedelta(minutes=minutes), st.sampled_from(LEAPS), st.integers(-3000, 3000)
    ),
)


def field(low: int, high: int, *, fine: bool = True) -> st.SearchStrategy[str]:
    """Return cron fields over a range of numbers."""
    number = st.integers(low, high)
    element = st.one_of(
        number.map(str),
        st.tuples(number, number).map(lambda pair: f"{pair[0]}-{pair[1]}"),
        st.tuples(number, st.integers(1, 12)).map(lambda pair: f"{pair[0]}/{pair[1]}"),
        st.tuples(number, number, st.integers(1, 7)).map(lambda three: f"{three[0]}-{three[1]}/{three[2]}"),
    )
    listed = st.lists(element, min_size=1, max_size=3).map(",".join)
    star = st.one_of(st.just("*"), st.integers(2, 20).map(lambda step: f"*/{step}"))
    return st.one_of(star, listed) if fine else st.one_of(st.just("*"), listed)


days = st.one_of(
    st.just("*"), st.just("*"), field(1, 28), st.sampled_from(("L", "L-3", "LW", "15W", "1W", "31W", "1,L", "?"))
)
weekdays = st.one_of(
    st.just("*"), st.just("*"), field(0, 7), st.sampled_from(("mon-fri", "fri-mon", "1#2,5", "5L", "L5", "sun#5", "?"))
)
months = st.one_of(st.just("*"), st.just("*"), st.just("*"), field(1, 12), st.sampled_from(("jan-mar", "oct-feb")))
minutes, hours = field(0, 59), field(0, 23)
cron5 = st.tuples(minutes, hours, days, months, weekdays).map(" ".join)
cron6 = st.tuples(field(0, 59), minutes, hours, days.filter(lambda d: d != "?"), months, weekdays).map(" ".join)
crontabs = cron5.map(lambda text: f"crontab: {text}")
intervals = st.one_of(
    st.integers(1, 100_000).map(lambda seconds: f"every {seconds}s"),
    st.sampled_from(("every 0.5s", "every 1h30m", "PT5M", "P1D", "P1M", "P1Y", "P1DT1H", "P2W", "every minute")),
)
iso_texts = st.builds(
    lambda count, start, step: f"R{count}/{start:%Y-%m-%dT%H:%M:%S}/{step}",
    st.sampled_from(("", "1", "5", "1000")),
    st.datetimes(datetime(2005, 1, 1), datetime(2026, 12, 31)),
    st.sampled_from(("PT1H", "PT90M", "P1D", "P3D", "P1M", "P1Y", "P1M1D", "P1DT1H", "PT0.25S")),
)
onces = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)).map(lambda moment: f"{moment:%Y-%m-%dT%H:%M:%S}")
calendars = st.builds(
    lambda weekday, date, time: f"{weekday}{date} {time}",
    st.sampled_from(("", "Mon..Fri ", "Sat,Sun ", "Wed ")),
    st.sampled_from(("*-*-*", "*-*-1..7", "*-*~1", "*-*~7/2", "*-2-*", "*-1/3-1", "2020..2030-*-13")),
    st.sampled_from(("02:30", "*:0/15", "00:00:00", "9..17/2:10,40", "*:*:0/20", "*:*:0/0.25", "1:30:15")),
)
single_events = onces.map(lambda moment: f"calendar: {moment.replace('T', ' ')}")
rrules = st.builds(
    lambda start, rule: f"DTSTART:{start:%Y%m%dT%H%M%S}\nRRULE:{rule}",
    st.datetimes(datetime(2000, 1, 1), datetime(2026, 12, 31)),
    st.sampled_from(
        (
            "FREQ=DAILY",
            "FREQ=DAILY;INTERVAL=3;BYHOUR=1,2,3;BYMINUTE=0,30",
            "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR;WKST=SU",
            "FREQ=MONTHLY;BYDAY=-1FR",
            "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
            "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
            "FREQ=HOURLY;INTERVAL=7",
            "FREQ=HOURLY;INTERVAL=7;BYDAY=SA,SU",
            "FREQ=MINUTELY;INTERVAL=25;BYHOUR=1,2,3",
            "FREQ=DAILY;COUNT=12",
            "FREQ=MONTHLY;BYMONTHDAY=-1,13;UNTIL=20280101T000000Z",
        )
    ),
)
any_text = st.one_of(cron5, cron6, crontabs, intervals, iso_texts, onces, single_events, calendars, rrules)


def chain(schedule: Schedule, after: datetime, number: int = 12) -> list[datetime]:
    """Return some occurrences."""
    return list(schedule.occurrences(after, limit=number))


def readings(zone: ZoneInfo, naive: datetime) -> list[datetime]:
    """Return the instants at which a clock in the zone shows that: none, one or two, told by zoneinfo's own fold."""
    found = {naive.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return sorted(instant for instant in found if instant.astimezone(zone).replace(tzinfo=None) == naive)


def gap_at(zone: ZoneInfo, naive: datetime) -> tuple[datetime, timedelta]:
    """Return when the gap ends that swallows the reading, and how long it is."""
    early, late = sorted(naive.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    instant = early
    while (instant + timedelta(minutes=1)).astimezone(zone).utcoffset() == early.astimezone(zone).utcoffset():
        instant += timedelta(minutes=1)
    return instant + timedelta(minutes=1), late - early


def minutes_of(first: datetime, last: datetime) -> Iterator[datetime]:
    """Iterate over naive readings, minute by minute."""
    while first <= last:
        yield first
        first += timedelta(minutes=1)
