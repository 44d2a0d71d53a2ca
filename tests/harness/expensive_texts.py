"""Texts of schedules for hypothesis with which an author could keep a beat busy."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.harness.schedule_texts import any_text, field

POSITIONS = ",".join(str(position) for position in (*range(1, 367), *range(-366, 0)))
PRIMES = (1, 7, 59, 61, 1_439, 86_399, 86_413, 999_983, 999_999_937)


def part(name: str, values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(st.just(""), values.map(lambda value: f";{name}={value}"))


def listed(low: int, high: int, most: int) -> st.SearchStrategy[str]:
    numbers = st.lists(st.integers(low, high), min_size=1, max_size=most, unique=True)
    return numbers.map(lambda found: ",".join(map(str, found)))


expensive_rules = st.builds(
    lambda start, frequency, *parts: f"{start}RRULE:FREQ={frequency}{''.join(parts)}",
    st.sampled_from(("", "DTSTART:10000101T000000\n", "DTSTART:19000228T235959\n", "DTSTART:20240229T023000\n")),
    st.sampled_from(("SECONDLY", "SECONDLY", "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY")),
    part("INTERVAL", st.sampled_from(PRIMES).map(str)),
    part("COUNT", st.sampled_from(("1", "5", "100000", "1000000000"))),
    part("BYMONTH", listed(1, 12, 12)),
    part("BYHOUR", listed(0, 23, 24)),
    part("BYMINUTE", listed(0, 59, 60)),
    part("BYSECOND", listed(0, 59, 60)),
    part("BYMONTHDAY", st.one_of(st.sampled_from(("29", "31", "-31")), listed(1, 31, 31))),
    part("BYYEARDAY", st.one_of(st.sampled_from(("366", "-366")), listed(1, 366, 100))),
    part("BYWEEKNO", st.one_of(st.sampled_from(("53", "-53")), listed(1, 53, 53))),
    part("BYDAY", st.sampled_from(("MO", "SU", "MO,TU,WE,TH,FR,SA", "MO,TU,WE,TH,FR,SA,SU"))),
    part("BYSETPOS", st.one_of(st.sampled_from(("366", "-366", POSITIONS)), listed(1, 366, 100))),
).filter(lambda text: len(text) <= 4_000)
expensive_crons = st.tuples(
    field(0, 59), field(0, 59), field(0, 23), st.sampled_from(("*", "29", "31", "L", "LW")), field(1, 12), field(0, 7)
).map(" ".join)
expensive_intervals = st.builds(
    "R{}/{}/{}".format,
    st.sampled_from(("", "1", "1000000000")),
    st.sampled_from(("1000-01-31T00:00:00.000001", "2026-02-28T02:30:00", "9997-12-31T23:59:59")),
    st.sampled_from(("PT0.01S", "PT0.999983S", "P1D", "P1DT0.000001S", "P1M1DT1S", "P100Y", "P999983D")),
)
expensive_calendars = st.builds(
    "calendar: {}{} {}".format,
    st.sampled_from(("", "Mon ", "Sat..Mon ")),
    st.sampled_from(("*-2-29", "*-*~31", "1970..2199/229-*-*", "*-*-31", "*-*-*/7", "*-*-*")),
    st.sampled_from(("*:*:0/0.01", "*:*:0/0.011", "*:*:*", "2:30", "0/7:0/7:0/7")),
)
expensive_texts = st.one_of(
    any_text, expensive_rules, expensive_rules, expensive_crons, expensive_intervals, expensive_calendars
)
