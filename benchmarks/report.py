"""From the results to the page: the tables between the markers of docs/performance.md, and the plot beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.results import Figure, Run, read, written

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
BEGIN, END = "<!-- figures: begin (python -m benchmarks report) -->", "<!-- figures: end -->"
HEAD = "| what | median | least to most | of | unit | beside |\n|---|---:|---:|---:|---|---|"
# The picture: who sends how many messages a second of as many due rows, by the beginning and the end of their figures.
PLOTTED = (
    ("fire rate, redis, 10,000 rows, 2 beats", "", "celery-pgbeat, two beats"),
    ("fire rate, redis, 10,000 rows, 1 beat", "", "celery-pgbeat, one beat"),
    ("lean tick, redis, 10,000 rows, 2 beats", "", "the lean tick, two processes"),
    ("lean tick, redis, 10,000 rows, 1 beat", "", "the lean tick, one process"),
    ("celery-redbeat ", ", 10,000 due intervals", ""),
    ("django-celery-beat ", ", 10,000 due intervals", ""),
    ("Celery's PersistentScheduler ", ", 10,000 due intervals", ""),
    ("sqlalchemy-celery-beat ", ", 10,000 due intervals", ""),
)
TITLE = "10,000 periodic tasks due at one instant, over Redis"
AXIS = "messages a second: median, least and most"
OURS, LIMIT, PEER = "#2a6f97", "#9aa5ab", "#c98a2b"  # colours
HEIGHT = 0.42  # inches of a bar


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
    shown = newest(runs)
    machines = list(dict.fromkeys(map(machine_of, shown)))
    sections = [section(run, machines.index(machine_of(run))) for run in shown]
    parts = [before + begin, *image, *sections, legend(machines), end + after]
    page.write_text("\n\n".join(parts), encoding="utf-8")


def newest(runs: Iterable[Run]) -> list[Run]:
    """Return one run for each measure and machine, in the order of the first ones, with each figure's newest value."""
    found: dict[tuple[str, ...], Run] = {}
    for run in runs:
        key = (run.measure, *(f"{name} {value}" for name, value in run.machine.items()))
        known = found.get(key)
        figures = {figure.what: figure for one in (known, run) if one is not None for figure in one.figures}
        found[key] = Run(run.measure, run.at, run.options, run.machine, list(figures.values()))
    return list(found.values())


def section(run: Run, machine: int) -> str:
    """Return the part of the page about one measure."""
    when = f"{run.at[:10]}, machine {machine + 1}"
    return "\n".join((f"### {run.measure}", "", HEAD, *map(line, run.figures), "", when))


def legend(machines: Iterable[str]) -> str:
    """Return the part of the page that describes the machines, by their numbers."""
    return "\n".join(("### Machines", "", *(f"{number}. {machine}" for number, machine in enumerate(machines, 1))))


def machine_of(run: Run) -> str:
    """Return the machine of a run in words."""
    return ", ".join(f"{name} {value}" for name, value in run.machine.items())


def line(figure: Figure) -> str:
    """Return a figure's line of the table."""
    cells = (cell.translate({ord(sign): f"\\{sign}" for sign in "|*"}) for cell in figure.cells())
    what, median, least, most, times, unit, beside = cells
    spread = f"{least} to {most}" if len(figure.values) > 1 else ""
    return f"| {what} | {median} | {spread} | {times} | {unit} | {beside} |"


def draw(path: Path, runs: Sequence[Run]) -> bool:
    """Draw the rates of `PLOTTED` as bars with their spread; return whether there was any."""
    figures = [figure for run in newest(runs) for figure in run.figures if figure.unit == "messages/s"]
    rates = {label: rate for pattern in PLOTTED for label, rate in _found(figures, *pattern)}
    if not rates:
        return False
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "celery-pgbeat", "svg.fonttype": "none"})  # the same results, the same file
    from matplotlib import pyplot

    drawing, axes = pyplot.subplots(figsize=(9, 1.2 + HEIGHT * len(rates)), layout="constrained")
    medians = [rate.median for rate in rates.values()]
    below = [rate.median - min(rate.values) for rate in rates.values()]
    above = [max(rate.values) - rate.median for rate in rates.values()]
    bars = axes.barh(list(rates), medians, color=list(map(_colour, rates)), xerr=[below, above], ecolor="#444444")
    most = max(max(rate.values) for rate in rates.values())
    for bar, rate in zip(bars, rates.values(), strict=True):
        place = (max(rate.values) + most / 60, bar.get_y() + bar.get_height() / 2)
        axes.text(*place, written(rate.median), va="center")
    axes.invert_yaxis()
    axes.set_xlim(0, most * 1.12)
    axes.set_title(TITLE, loc="left")
    axes.set_xlabel(AXIS)
    axes.spines[["top", "right"]].set_visible(False)
    drawing.savefig(path, metadata={"Date": None})
    pyplot.close(drawing)
    return True


def _found(figures: Iterable[Figure], begins: str, ends: str, label: str) -> Iterator[tuple[str, Figure]]:
    """Iterate over the figures of a name, or of those that begin and end so, with their labels."""
    for figure in figures:
        if figure.what == begins if label else figure.what.startswith(begins) and figure.what.endswith(ends):
            yield label or figure.what.removesuffix(ends), figure


def _colour(label: str) -> str:
    if label.startswith("celery-pgbeat"):
        return OURS
    return LIMIT if label.startswith("the lean tick") else PEER
