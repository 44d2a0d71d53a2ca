"""Run a measure: `python -m benchmarks <measure> [options]`, and `python -m benchmarks report results.json`."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import (
    change,
    conditions,
    dashboard,
    edits,
    fire,
    idle,
    lateness,
    messages,
    minute,
    planning,
    report,
    schedules,
    soak,
    waiting,
    worker,
)
from benchmarks.ground import servers
from benchmarks.peers import measure as peers
from benchmarks.results import Run, append, appendable, readable, shown

MEASURES = {
    "fire": fire,
    "peers": peers,
    "minute": minute,
    "lateness": lateness,
    "idle": idle,
    "change": change,
    "worker": worker,
    "soak": soak,
    "waiting": waiting,
    "edits": edits,
    "dashboard": dashboard,
    "messages": messages,
    "schedules": schedules,
    "planning": planning,
    "conditions": conditions,
}


def main() -> None:
    """Run one measure and print its result, or write the page from the results."""
    options = parser().parse_args()
    if options.measure == "report":
        report.write(options.results, options.page)
        return
    asked = {name: value for name, value in vars(options).items() if name not in ("measure", "out")}
    with servers() as ground:
        run = Run.of(options.measure, asked, MEASURES[options.measure].run(ground, options))
    print(shown(run), flush=True)
    if options.out is not None:
        append(options.out, run)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="measure", required=True, metavar="measure")
    for name, module in MEASURES.items():
        summary = (module.__doc__ or "").partition("\n")[0]
        command = commands.add_parser(
            name,
            help=summary,
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_options(command)
        command.add_argument("--out", type=appendable, help="the JSON file to which the result is appended")
    command = commands.add_parser("report", help="write the table and the plot of docs/performance.md")
    command.add_argument("results", type=readable, help="the JSON file that --out has written")
    command.add_argument("--page", type=Path, default=report.PAGE, help="default: docs/performance.md")
    return parser


if __name__ == "__main__":
    main()
