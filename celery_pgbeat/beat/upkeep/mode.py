"""Whether a beat sends, or is in shadow: it decides as usual, and sends nothing, because another scheduler does.

All beats of a schema should have one mode. If they have not, one of two things has happened: a beat without the setting
was started while the other scheduler is sending, or one in shadow was forgotten when that one was stopped. No beat can
tell which, so neither of them may decide: what is due stays due. When one kind is gone, the other decides it, by
`catchup`. Nothing is sent twice, and nothing is recorded as sent by a scheduler that does not run any more.

There is one exception: beats that were sending before a beat in shadow came go on, and so do those that join them. A
stray beat in shadow stops no beat that sends.
"""

from __future__ import annotations

import logging

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.errors import ShadowConflict
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.settings import Settings

logger = logging.getLogger(__name__)

SENDS, WAITS, SHADOW = "sends", "waits", "shadow"
IN_SHADOW = (
    "This beat is in shadow (pgbeat_shadow), and a beat on the host {host!r} is not: this one decides nothing while "
    "that one lives. Set pgbeat_shadow alike for all beats of the schema {schema!r}."
)
BESIDE_SHADOW = (
    "A beat on the host {host!r} is in shadow (pgbeat_shadow), and this one is not: this one waits while that one "
    "lives, because another scheduler may be sending. Stop the beats in shadow, or set pgbeat_shadow here too."
)


class Mode:
    """The mode of one beat, checked against those of the others.

    Args:
        queries: of the beat.
        settings: the app's.

    Attributes:
        value: `sends`; `waits`, until it has looked for beats in shadow; or `shadow`.
    """

    def __init__(self, queries: BeatQueries, settings: Settings) -> None:
        self.value = SHADOW if settings.shadow else WAITS
        self._queries = queries
        self._settings = settings
        self._check_at = 0.0

    def check(self) -> None:
        """Check that no beat of another mode is in the way. A beat that waited begins to send.

        Once it sends, it goes on. One in shadow looks again in each poll: a beat may start that is to send.

        Raises:
            ShadowConflict: one is.
        """
        if self.value == SENDS or boottime() < self._check_at:
            return
        others = self._queries.modes()
        if self.value == SHADOW:
            stranger = others.get(SENDS) or others.get(WAITS)
        else:
            stranger = None if SENDS in others else others.get(SHADOW)
        if stranger is not None:
            text = IN_SHADOW if self.value == SHADOW else BESIDE_SHADOW
            raise ShadowConflict(text.format(host=stranger, schema=self._settings.schema))
        if self.value == WAITS:
            self._queries.begin_to_send()
            self.value = SENDS
            return
        if self._check_at == 0.0:
            logger.warning(
                "This beat is in shadow (pgbeat_shadow): it records what it would send, and sends nothing",
                extra={"action": "start"},
            )
        self._check_at = boottime() + self._settings.poll.total_seconds()
