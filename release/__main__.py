"""Build and check the package, write its bill of materials, or walk through the checklist of a release."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from release import checklist, package
from release.failure import Failure


def main() -> None:
    """Run one command; what is wrong is one line, and exit code 1."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the repository")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    packing = commands.add_parser("package", help="build the last commit twice, compare, install and try it")
    packing.add_argument(
        "--tests", action="store_true", help="also run the unit tests of the sdist from its own folder"
    )
    commands.add_parser("sbom", help="write the bill of materials of what the wheel of dist/ installs")
    walking = commands.add_parser("checklist", help="go through what a release needs, and stop at what is missing")
    walking.add_argument("--facts", action="store_true", help="only what is written, without the commands")
    options = parser.parse_args()
    root = options.root.resolve()
    try:
        if options.command == "package":
            package.check(root, tests=options.tests)
        elif options.command == "sbom":
            package.write_bill_of_materials(root)
        else:
            checklist.walk(root, commands=not options.facts)
    except Failure as failure:
        sys.exit(f"Error: {failure}")


if __name__ == "__main__":
    main()
