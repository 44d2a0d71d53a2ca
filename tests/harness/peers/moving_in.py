"""`import --from` at the shell, and a database of a peer whose clock stands."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

from click.testing import CliRunner, Result

from celery_pgbeat.cli import main
from tests.harness.clock import Clock
from tests.harness.peers.our_runs import differing, our_runs
from tests.harness.peers.run_peer import peer_runs, run_peer

WEEK = timedelta(days=7)
AUTUMN = datetime(2026, 10, 22, 12, 0, 5, tzinfo=timezone.utc)  # the clocks go back in Berlin on the 25th
SPRING = datetime(2027, 3, 25, 12, 0, 5, tzinfo=timezone.utc)  # they go forward on the 28th


class MovingIn:
    """Moves from one kind of source into one database."""

    def __init__(self, kind: str, url: str, source: str | None = None, app: str | None = None) -> None:
        self.url = url
        self.app = app
        self.kind = kind
        self.source = source
        self.clock = Clock(url)

    def run(self, *words: str) -> Result:
        """Run `import --from`."""
        app = [] if self.app is None else ["-A", self.app]
        source = [] if self.source is None else [self.source]
        return CliRunner().invoke(main, [*app, "--url", self.url, "import", "--from", self.kind, *source, *words])

    def report(self, *words: str) -> dict[str, dict[str, Any]]:
        """Return the rows of the report by name."""
        done = self.run("--json", *words)
        assert 0 == done.exit_code, done.output
        return {row["name"]: row for row in json.loads(done.stdout)["rows"]}

    def filled_by(self, peer: str, start: datetime, drawn: int = 0) -> None:
        """Stop the clock at an instant, and have a peer's own code fill its store, with drawn entries too."""
        self.clock.stand_at(start)
        run_peer(peer, "fill", self.source or self.url, start, drawn=drawn)

    def differences(self, peer: str, start: datetime, drawn: int = 0) -> Any:
        """Return in which runs of the week after `start` the peer and our rows differ, by name."""
        end = start + WEEK
        return differing(peer_runs(peer, self.source or self.url, start, end, drawn), our_runs(self.url, end))
