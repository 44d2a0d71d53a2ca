"""Records what another scheduler sends, in its own process: one line of JSON for each message that the broker took.

`celery-pgbeat compare` reads the lines. The module changes nothing else there: it needs no database and no setting, and
an error of the file is logged and never stops a message.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from celery.signals import beat_init

from celery_pgbeat.settings.our_scheduler import is_ours

logger = logging.getLogger(__name__)


def record_sent(path: str | Path) -> None:
    """Record what the beat of this process sends. Other processes, such as workers, ignore the call.

    Works with each scheduler that builds on Celery's: its own, django-celery-beat, RedBeat, sqlalchemy-celery-beat.
    Call it in the module of the app, where the old beat runs. Beats of this package record nothing here, because what
    they send, and in shadow would send, is in the database.

    Args:
        path: the file to which the lines are added. Give each beat its own.
    """
    beat_init.connect(Recorder(Path(path)).watch, weak=False)


class Recorder:
    """Records into one file.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fails = False

    def watch(self, sender: Any, **_: Any) -> None:
        """Record what the scheduler of a beat that starts sends from now on."""
        scheduler = sender.scheduler
        if is_ours(scheduler):
            return
        send = scheduler.apply_async

        def recorded(entry: Any, *args: Any, **kwargs: Any) -> Any:
            return self._recorded(send, entry, *args, **kwargs)

        scheduler.apply_async = recorded
        self._write({"recording_since": _now()})

    def _recorded(self, send: Callable[..., Any], entry: Any, *args: Any, **kwargs: Any) -> Any:
        line = {"name": entry.name, "task": entry.task, "sent_at": _now()}
        try:
            result = send(entry, *args, **kwargs)
            self._write({**line, "id": getattr(result, "id", None)})
        except Exception:
            raise  # it is not sent
        except BaseException:  # a signal ends the process: the broker may have the message, and the file the line
            self._write({**line, "interrupted": True})
            raise
        return result

    def _write(self, line: dict[str, Any]) -> None:
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            self._fails = False
        except (OSError, ValueError) as error:
            if not self._fails:
                logger.error("Cannot record what is sent in %s: %s", self._path, error)
            self._fails = True


def _now() -> str:
    return datetime.now(timezone.utc).isoformat()
