"""The type of an option with a fixed list of values: a wrong one is answered with the one that was meant."""

from __future__ import annotations

from typing import Any

import click

from celery_pgbeat.texts.suggestions import did_you_mean


class Choice(click.Choice):  # type: ignore[type-arg]  # no generic class before click 8.2
    """One of some words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the word; suggest a similar one if it is none of them."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            hint = did_you_mean(str(value), map(str, self.choices))
            raise click.BadParameter(f"{error.message.rstrip('.')}{hint or '.'}", ctx, param) from None
