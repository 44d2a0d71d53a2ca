"""Texts of schedules and of windows for hypothesis, most of which are none by a hair."""

from __future__ import annotations

from hypothesis import strategies as st

NIGHT = "cron: 0 0 * * * PT5H"


def elements() -> st.SearchStrategy[str]:
    numbers = st.integers(0, 62).map(str)
    names = st.sampled_from(["*", "?", "jan", "FRI", "L", "LW", "15W", "mon#2", "5L", "H", "H(1-5)", "foo", ""])
    ranges = st.tuples(numbers, numbers).map("-".join)
    plain = st.one_of(st.just("*"), numbers, ranges, names)
    steps = st.sampled_from(["", "", "", "/2", "/0", "/x"])
    return st.tuples(plain, steps).map("".join)


def lists() -> st.SearchStrategy[str]:
    return st.lists(elements(), min_size=1, max_size=3).map(",".join)


def crons() -> st.SearchStrategy[str]:
    heads = st.sampled_from(["", "", "", "cron: ", "crontab: ", "TZ=UTC ", "CRON_TZ=Foo/Bar "])
    fields = st.one_of(st.just("*"), st.just("*"), lists())
    return st.tuples(heads, st.lists(fields, min_size=3, max_size=8).map(" ".join)).map("".join)


def intervals() -> st.SearchStrategy[str]:
    heads = st.sampled_from(["every ", "@every ", "every: ", "EVERY  ", "P", "PT", "R/PT", "R3/P", "-P", "iso: P"])
    amounts = st.tuples(
        st.sampled_from(["", "0", "5", "90", "1.5", "0.0", "-1", "+2"]),
        st.sampled_from(["s", "m", " minutes", "H", "D", "M", "Y", "W", "ms", "months", "x", " hour", ""]),
    ).map("".join)
    return st.tuples(heads, st.lists(amounts, min_size=1, max_size=3).map("".join)).map("".join)


def moments() -> st.SearchStrategy[str]:
    two = st.integers(0, 33).map(lambda number: f"{number:02}")
    dates = st.tuples(st.sampled_from(["2026", "2028", "*", "99", "0999"]), two, two).map("-".join)
    times = st.tuples(st.sampled_from([" ", "T"]), two, st.just(":"), two, st.sampled_from(["", ":30", "Z", "+02:00"]))
    return st.tuples(dates, st.one_of(st.just(""), times.map("".join))).map("".join)


def events() -> st.SearchStrategy[str]:
    numbers = st.sampled_from(["*", "0", "1", "7", "09", "12", "30", "31", "45", "1..7", "0/15", "5/0", "1,15"])
    weekdays = st.sampled_from(["", "", "Mon ", "mon..fri ", "Sat,Sun ", "Fri..Mon "])
    dates = st.one_of(st.just(""), st.tuples(numbers, st.sampled_from("-~"), numbers, st.just(" ")).map("".join))
    times = st.tuples(numbers, st.just(":"), numbers, st.sampled_from(["", ":00", ":60", ":30.5"])).map("".join)
    zones = st.sampled_from(["", "", " UTC", " Europe/Berlin", " Foo", " EST"])
    return st.tuples(weekdays, dates, times, zones).map("".join)


def recurrences() -> st.SearchStrategy[str]:
    starts = st.sampled_from(["", "", "DTSTART:20261201T090000 ", "DTSTART;TZID=Europe/Berlin:20261201T090000\n"])
    heads = st.sampled_from(["RRULE:", "rrule: RRULE:", "rrule:", "FREQ=DAILY;", ""])
    parts = st.sampled_from(
        ["FREQ=DAILY", "FREQ=MONTHLY", "INTERVAL=2", "INTERVAL=0", "INTERVAL=007", "BYDAY=-1FR", "COUNT=3", "BYHOUR=25"]
    )
    return st.tuples(starts, heads, st.lists(parts, max_size=3).map(";".join)).map("".join)


def suns() -> st.SearchStrategy[str]:
    events = st.sampled_from(["sunset", "dawn_civil", "noon"])
    return st.tuples(events, st.sampled_from(["52.52 13.40", "91 0", "x"])).map(
        lambda words: f"solar: {' '.join(words)}"
    )


wrong_texts = st.one_of(crons(), intervals(), moments(), events(), recurrences(), suns(), st.text(max_size=30))
BLANKS = ["", "", " ", "\n\t", "\r\n", "\x1c", "\u2003", "\xa0 "]
GOOD_WINDOWS = [
    NIGHT,
    "0 0 * * sat P1D",
    "daily pt1m",
    "every 1h PT1M",
    "2026-12-05 P2D",
    "window: a",
    "WINDOW :b",
    "rdate;VALUE=DATE:20261209 P1D",
    "RRULE:FREQ=DAILY;BYHOUR=0;BYMINUTE=0;BYSECOND=0 PT1M",
]


def windows() -> st.SearchStrategy[str]:
    lengths = st.sampled_from(["PT1M", "PT1M", "P1D", "p2dT3H", "PT0S", "-PT5M", "+P1D", "P1.5D", "5h", "P", ""])
    gaps = st.sampled_from([" ", " ", "  ", "\t", "\u2003", ""])
    openers = st.one_of(st.sampled_from(["0 0 * * *", "daily", "window:", "window : ", ""]), wrong_texts)
    return st.tuples(openers, gaps, lengths).map("".join)


def lists_of_windows() -> st.SearchStrategy[list[str]]:
    parts = st.one_of(st.sampled_from(GOOD_WINDOWS), st.sampled_from(GOOD_WINDOWS), windows())
    marks = st.tuples(st.sampled_from(BLANKS), st.just(";"), st.sampled_from(BLANKS)).map("".join)
    several = st.tuples(marks, st.lists(parts, min_size=1, max_size=3)).map(lambda given: given[0].join(given[1]))
    texts = st.tuples(st.sampled_from(BLANKS), st.one_of(parts, several), st.sampled_from(BLANKS)).map("".join)
    many = st.lists(st.sampled_from(GOOD_WINDOWS), min_size=18, max_size=24)
    return st.one_of(st.lists(texts, max_size=3), st.lists(texts, max_size=3), many)
