"""Charts as SVG, readable without script: a title says what is to be seen. No inline style, because of the CSP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from celery_pgbeat.texts.safe_text import one_line

WIDTH, HEIGHT, GAP = 300, 44, 1  # units of the drawing
LANE_WIDTH, LANE_HEIGHT = 1_000, 20  # likewise, of a lane
NARROWEST = 2.0  # units of a mark
LEAST = 1.5  # the height of a bar that is not nothing
FEWEST = 30  # bars for which there is room: fewer are no wider, and stand on the right


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar.

    Attributes:
        value: its height; None draws nothing.
        says: its tooltip.
        kind: the class of its colour: ok, run, late, bad or idle.
        part: the share of it, from its foot, that is drawn as `bad`.
    """

    value: float | None
    says: str
    kind: str = "run"
    part: float = 0.0


def bars(values: Sequence[Bar], title: str) -> Markup:
    """Draw bars from left to right, as high as their values.

    Args:
        values: the bars; the highest fills the height.
        title: the finding, for those who do not see it.
    """
    most = max((bar.value for bar in values if bar.value is not None), default=0.0)
    step = WIDTH / max(len(values), FEWEST)
    left = WIDTH - step * len(values)
    drawn = Markup("").join(_bar(bar, left + place * step, step - GAP, most) for place, bar in enumerate(values))
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<title>{}</title><rect class="ground" x="0" y="{}" width="{}" height="1"/>{}</svg>'
    ).format(WIDTH, HEIGHT, one_line(title), one_line(title), HEIGHT - 1, WIDTH, drawn)


def _bar(bar: Bar, x: float, width: float, most: float) -> Markup:
    if bar.value is None:
        return Markup("")
    height = 0.0 if most <= 0 or bar.value <= 0 else max(LEAST, (HEIGHT - 2) * bar.value / most)
    bad = min(height, max(LEAST, height * bar.part)) if bar.part else 0.0
    return Markup('<g><title>{}</title><rect class="hit" x="{:.1f}" y="0" width="{:.1f}" height="{}"/>{}{}</g>').format(
        one_line(bar.says),
        x,
        width,
        HEIGHT,
        _rectangle(bar.kind, x, width, HEIGHT - 1 - height, height - bad),
        _rectangle("bad", x, width, HEIGHT - 1 - bad, bad),
    )


def _rectangle(kind: str, x: float, width: float, y: float, height: float) -> Markup:
    if height <= 0:
        return Markup("")
    return Markup('<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(
        kind, x, y, width, height
    )


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark in a lane, from -1 (the left end) by 0 (now) to 1 (the right end).

    Attributes:
        begin: where it begins.
        end: where it ends.
        kind: the class of its colour, or `planned`, which is an outline, or `more`, a thin line: too many to draw.
        says: its tooltip.
    """

    begin: float
    end: float
    kind: str
    says: str


def lane(marks: Sequence[Mark], title: str) -> Markup:
    """Draw what happened on the left of now, and what is planned on the right of it.

    Args:
        marks: in any order; those that matter more are drawn over the others.
        title: the finding, for those who do not see it.
    """
    order = {"more": -1, "planned": 0, "idle": 1, "ok": 2, "run": 3, "late": 4, "bad": 5}
    drawn = Markup("").join(_mark(mark) for mark in sorted(marks, key=lambda mark: order.get(mark.kind, 0)))
    return Markup(
        '<svg class="lane" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="ground" x="0" y="{}" width="{}" height="1"/>{}'
        '<rect class="present" x="{}" y="0" width="1.5" height="{}"/></svg>'
    ).format(
        LANE_WIDTH, LANE_HEIGHT, one_line(title), LANE_HEIGHT // 2, LANE_WIDTH, drawn, LANE_WIDTH // 2, LANE_HEIGHT
    )


def _mark(mark: Mark) -> Markup:
    x = (mark.begin + 1) * LANE_WIDTH / 2
    width = max(NARROWEST, (mark.end - mark.begin) * LANE_WIDTH / 2)
    inset = {"planned": 6, "late": 5, "more": LANE_HEIGHT // 2 - 2}.get(mark.kind, 2)
    return Markup('<rect class="{}" x="{:.1f}" y="{}" width="{:.1f}" height="{}"><title>{}</title></rect>').format(
        mark.kind, x, inset, width, LANE_HEIGHT - 2 * inset, one_line(mark.says)
    )
