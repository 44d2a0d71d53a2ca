"""From the results to the page: the tables between the markers of docs/performance.md, and the plot beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.results import Figure, Run, read, written

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
BEGIN, END = "<!-- figures: begin (python -m benchmarks report) -->", "<!-- figures: end -->"
HEAD = "| what | median | least to most | of | unit | beside |\n|---|---:|---:|---:|---|---|"
PLOTTED = ("fire", "peers")  # what is measured in messages a second, on one axis
HEIGHT = 0.28  # inches of a bar


def write(results: Path, page: Path) -> None:
    """Write the page's tables and its plot from a file of results; of each figure the newest counts."""
    runs = read(results)
    plot = page.with_suffix(".svg")
    drawn = draw(plot, runs)
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{page} lacks the line {BEGIN!r}, or {END!r} after it")
    image = [f"![Messages a second]({plot.name})"] if drawn else []
    page.write_text("\n\n".join([before + begin, *image, *map(section, newest(runs)), end + after]), encoding="utf-8")


def newest(runs: Iterable[Run]) -> list[Run]:
    """Return one run for each measure and machine, in the order of the first ones, with each figure's newest value."""
    found: dict[tuple[str, ...], Run] = {}
    for run in runs:
        key = (run.measure, *(f"{name} {value}" for name, value in run.machine.items()))
        known = found.get(key)
        figures = {figure.what: figure for one in (known, run) if one is not None for figure in one.figures}
        found[key] = Run(run.measure, run.at, run.options, run.machine, list(figures.values()))
    return list(found.values())


def section(run: Run) -> str:
    """Return the part of the page about one measure."""
    machine = ", ".join(f"{name} {value}" for name, value in run.machine.items())
    return "\n".join((f"### {run.measure}", "", HEAD, *map(line, run.figures), "", f"{run.at[:10]}; {machine}"))


def line(figure: Figure) -> str:
    """Return a figure's line of the table."""
    cells = (cell.translate({ord(sign): f"\\{sign}" for sign in "|*"}) for cell in figure.cells())
    what, median, least, most, times, unit, beside = cells
    spread = f"{least} to {most}" if len(figure.values) > 1 else ""
    return f"| {what} | {median} | {spread} | {times} | {unit} | {beside} |"


def draw(path: Path, runs: Sequence[Run]) -> bool:
    """Draw the rates as bars on a logarithmic axis, with their spread; return whether there was any."""
    rates = [
        figure
        for run in newest(runs)
        if run.measure in PLOTTED
        for figure in run.figures
        if figure.unit == "messages/s"
    ]
    if not rates:
        return False
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "celery-pgbeat", "svg.fonttype": "none"})  # the same results, the same file
    from matplotlib import pyplot

    drawing, axes = pyplot.subplots(figsize=(10, 1 + HEIGHT * len(rates)), layout="constrained")
    medians = [rate.median for rate in rates]
    spread = [[rate.median - min(rate.values) for rate in rates], [max(rate.values) - rate.median for rate in rates]]
    bars = axes.barh([rate.what for rate in rates], medians, xerr=spread, color=[_colour(rate) for rate in rates])
    axes.bar_label(bars, labels=[written(median) for median in medians], padding=6)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(1, max(max(rate.values) for rate in rates) * 8)
    axes.set_xlabel("messages a second (median, least and most)")
    drawing.savefig(path, metadata={"Date": None})
    pyplot.close(drawing)
    return True


def _colour(rate: Figure) -> str:
    if rate.what.startswith("bare limit"):
        return "#bbbbbb"
    return "#2a6f97" if rate.what.startswith(("fire rate", "celery-pgbeat")) else "#c98a2b"
