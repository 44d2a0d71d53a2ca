"""The account of one round under faults: what was due, what became of it, and whether that will do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from tests.harness.checker import Occurrence, Seen, doubled, early, lateness, lost

SHOWN = 5  # of a list of offenders


@dataclass(frozen=True, slots=True)
class Account:
    """What was due against what was seen.

    Attributes:
        due: by the schedules' own arithmetic, never by the product's tables.
        sent: the messages at the broker; empty if the round had no tap.
        started: the runs of the tasks; None in a round without workers.
        recorded: the occurrences that the product recorded as skipped, with a reason.
    """

    due: Sequence[Occurrence]
    sent: Sequence[Seen]
    started: Sequence[Seen] | None = None
    recorded: Sequence[Occurrence] = ()

    @property
    def lost(self) -> list[Occurrence]:
        """What was due, and was neither seen nor recorded."""
        skipped = set(self.recorded)
        wanted = [occurrence for occurrence in self.due if occurrence not in skipped]
        missing = set(lost(wanted, self.sent)) if self.sent else set()
        if self.started is not None:
            missing |= set(lost(wanted, self.started))
        return sorted(missing)

    @property
    def doubled_sends(self) -> list[Occurrence]:
        """What was sent more than once."""
        return doubled(self.sent)

    @property
    def doubled_starts(self) -> list[Occurrence]:
        """What was started more than once."""
        return doubled(self.started or ())

    @property
    def recorded_again(self) -> list[Occurrence]:
        """What was recorded more than once."""
        return sorted(occurrence for occurrence, times in Counter(self.recorded).items() if times > 1)

    @property
    def early(self) -> list[Seen]:
        """What was seen before its instant."""
        return early([*self.sent, *(self.started or ())])

    def late(self, percentile: float) -> timedelta:
        """Give the lateness of the occurrences: of the first message each, or of the first start without a tap."""
        return lateness(first_each(self.sent or self.started or ()), [percentile])[percentile]

    def __str__(self) -> str:
        starts = "-" if self.started is None else f"{len(self.doubled_starts):,}"
        p50, p99, most = (self.late(percentile).total_seconds() for percentile in (50, 99, 100))
        return (
            f"due {len(self.due):,}  lost {len(self.lost):,}  recorded {len(self.recorded):,}  "
            f"doubled sends {len(self.doubled_sends):,}  double starts {starts}  "
            f"late p50 {p50:.3f} p99 {p99:.3f} max {most:.3f} s"
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """What an account may show. Nothing may be lost, early, or started twice, ever.

    Attributes:
        doubled_sends: the share of what was due that may be sent more than once.
        forgiven: doubled sends that are no share of anything: a round may be too short for one.
        late: seconds by percentile (100: the maximum).
    """

    doubled_sends: float = 0.0
    forgiven: int = 0
    late: Mapping[float, float] = field(default_factory=dict)

    def most_doubled_sends(self, account: Account) -> int:
        """Return how many occurrences may be sent more than once."""
        return max(self.forgiven, int(self.doubled_sends * len(account.due)))

    def judge(self, account: Account) -> None:
        """Find the faults.

        Raises:
            AssertionError: there are some; the message lists all kinds, and a few of each.
        """
        faults: list[str] = []
        for what, found, most in (
            ("lost", account.lost, 0),
            ("sent more than once", account.doubled_sends, self.most_doubled_sends(account)),
            ("started more than once", account.doubled_starts, 0),
            ("recorded more than once", account.recorded_again, 0),
            ("early", account.early, 0),
        ):
            if len(found) > most:
                faults.append(f"{len(found)} {what}, at most {most} may be: {found[:SHOWN]}")
        for percentile, seconds in self.late.items():
            if account.late(percentile) > timedelta(seconds=seconds):
                faults.append(f"p{percentile:g} of the lateness is {account.late(percentile)}, at most {seconds:g} s")
        assert account.due, "nothing was due"
        assert not faults, f"{account}: {'; '.join(faults)}"


def controls(account: Account, limits: Limits) -> dict[str, Account]:
    """Make accounts that are this one with a fault in it, which no judgement may pass."""
    skipped = set(account.recorded)
    victim = next(occurrence for occurrence in account.due if occurrence not in skipped)
    made = {"one taken away": _without(account, victim)}
    if account.sent:
        too_many = limits.most_doubled_sends(account) + 1
        again = replace(account, sent=[*account.sent, *first_each(account.sent)[:too_many]])
        made["sends doubled"] = again
    if account.started:
        made["one started twice"] = replace(account, started=[*account.started, account.started[0]])
    return made


def _without(account: Account, victim: Occurrence) -> Account:
    def others(seen: Sequence[Seen]) -> list[Seen]:
        return [each for each in seen if (each.periodic_task, each.scheduled_for) != victim]

    started = None if account.started is None else others(account.started)
    return replace(account, sent=others(account.sent), started=started)


def first_each(seen: Sequence[Seen]) -> list[Seen]:
    """Return the first sign of each occurrence."""
    found: dict[tuple[str | None, datetime | None], Seen] = {}
    for each in sorted(seen, key=lambda each: each.seen_at):
        found.setdefault((each.periodic_task, each.scheduled_for), each)
    return list(found.values())


def prove(account: Account, limits: Limits) -> None:
    """Judge an account, and the judge: the same account with one run missing, or one too many, must not pass.

    Raises:
        AssertionError: the account does not pass, or a control does.
    """
    limits.judge(account)
    for fault, control in controls(account, limits).items():
        try:
            limits.judge(control)
        except AssertionError:
            continue
        raise AssertionError(f"the control passes, so the judgement proves nothing: {fault}")
