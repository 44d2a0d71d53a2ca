"""Texts that are good, and what a slip of the hand or of malice makes of them."""

from __future__ import annotations

import random

GOOD = (
    "*/5 * * * *",
    "30 2 * * mon-fri",
    "0 0 L * *",
    "0 0 15W * *",
    "0 9 ? * mon#2",
    "0 0 0 29 2 ? 2028/4",
    "H H(2-5) * * *",
    "CRON_TZ=Europe/Berlin 0 6 * * 1-5",
    "crontab: 0 7 13 * fri",
    "@daily",
    "@every 1h30m",
    "every 10s",
    "every 5 minutes",
    "every 0.5s",
    "every P1DT1H",
    "PT15M",
    "P1M",
    "R5/2026-03-28T02:30:00/P1D",
    "R/2026-01-01T00:00:00+02:00/PT0.25S",
    "2026-12-09T10:00:00Z",
    "2026-12-09 10:00",
    "Mon..Fri 09:00",
    "calendar: *-*~03 4:00:30 Europe/Berlin",
    "Sat,Sun *-1,7-1..7 0/2:10:00",
    "*-*-* *:*:0/0.25",
    "quarterly",
    "solar: sunset 52.52 13.40",
    "DTSTART;TZID=Europe/Berlin:20260328T023000\nRRULE:FREQ=DAILY;COUNT=12;BYHOUR=2,3\nEXDATE:20260329T023000",
    "RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
    "RRULE:FREQ=SECONDLY;INTERVAL=86399;COUNT=1000000000;BYDAY=MO",
    "RRULE:FREQ=YEARLY;BYWEEKNO=53;BYDAY=SU;UNTIL=20991231T235959Z",
    "RDATE;VALUE=DATE:20261209,20270101",
    "cron: 0 0 * * * PT5H",
    "0 0 * * sat P1DT12H",
    "window: night; 0 0 * * sun P1D",
)
PIECES = (
    *(
        "*",
        "?",
        "/",
        "-",
        ",",
        "#",
        "L",
        "W",
        "LW",
        "H",
        "~",
        "..",
        ":",
        ";",
        "=",
        "+",
        "(",
        ")",
        "T",
        "Z",
        "P",
        "@",
        " ",
        "\t",
    ),
    *(
        "0",
        "00",
        "7",
        "13",
        "29",
        "31",
        "59",
        "60",
        "61",
        "99",
        "366",
        "-1",
        "-0",
        "0.1",
        "1e9",
        "999999937",
        "1970",
        "2199",
    ),
    *("9" * 30, "0" * 250, "5,5," * 60, "mon", "feb", "TZ=", "UTC", "Etc/GMT+12", "Mars/Olympus", "../../etc/passwd"),
    *(
        "every",
        "crontab:",
        "calendar:",
        "RRULE:",
        "\nEXRULE:",
        "COUNT=",
        "BYSETPOS=",
        "INTERVAL=0",
        "R0/",
        "PT",
        "window:",
    ),
    *(
        "\0",
        "\x1b[31m",
        "\u202e",
        "\u00a0",
        "\u0661",
        "\U0001d7d9",
        "\ud800",
        "ſ",
        "İ",
        "\r",
        "\x85",
        "%s",
        "{}",
        "'",
        "\\",
    ),
)


def mutated(numbers: random.Random) -> str:
    """Return a good text with some changes, or two of them in one."""
    text = numbers.choice(GOOD)
    for _ in range(numbers.choice((0, 1, 1, 1, 2, 2, 3, 8))):
        begin = numbers.randint(0, len(text))
        end = min(len(text), begin + numbers.choice((0, 0, 1, 1, 2, 5)))
        other = numbers.choice(GOOD)
        cut = numbers.randint(0, len(other))
        text = (
            text[:begin] + numbers.choice((numbers.choice(PIECES), "", text[begin:end] * 2, other[cut:])) + text[end:]
        )
    return text
