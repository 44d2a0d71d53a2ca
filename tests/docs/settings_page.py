"""The table of docs/settings.md, made from the settings themselves.

`python -m tests.docs.settings_page` writes it into the page.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from celery_pgbeat.settings import SETTINGS, Duration, in_units
from tests.docs.pages import ROOT, noted

PAGE = ROOT / "docs" / "settings.md"
NOTE = "Made from the code by `python -m tests.docs.settings_page`."
TABLE = re.compile(r"\| setting \|.*?\n(?=\n|\Z)", re.DOTALL)


def rendered() -> str:
    """Return the table as it has to be."""
    rows = [
        f"| `pgbeat_{setting.name}` | `PGBEAT_{setting.name.upper()}` | {_shown(setting.default)} | "
        f"{setting.metadata['meaning'].replace('|', chr(92) + '|')}{_bounds(setting.metadata['read'])} |\n"
        for setting in SETTINGS
    ]
    return "".join(["| setting | in the environment | default | meaning |\n", "|---|---|---|---|\n", *rows])


def _bounds(read: Any) -> str:
    return f" From {read.bounds}." if isinstance(read, Duration) else ""


def _shown(default: Any) -> str:
    if default is None:
        return "none"
    if isinstance(default, timedelta):
        return in_units(default)
    if isinstance(default, tuple):
        return f"`{', '.join(default)}`"
    return f"`{default}`"


if __name__ == "__main__":
    page = TABLE.sub(lambda _: rendered(), PAGE.read_text(encoding="utf-8"), count=1)
    PAGE.write_text(noted(page, NOTE), encoding="utf-8")
