"""Mutants made by rule, in places that a hash chooses: nobody has chosen those that the tests find.

A place is known by its function and its number there, in SQL by its line. So a change elsewhere leaves the choice as it
is, and a change of the place itself takes another one.

    Python   a comparison is turned, `and` and `or` are swapped, a `not` is dropped, a number is one more
    SQL      a condition is dropped: a line that begins with `and`
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from celery_pgbeat.postgres.statements import files
from tests.model.mutants import Mutant
from tests.mutants.planted import PACKAGE, ROOT, Planted

TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True, slots=True)
class Draw:
    """How many mutants of which files, and the tests that must find them."""

    count: int
    files: tuple[str, ...]
    tests: tuple[str, ...]

    def planted(self) -> dict[str, Planted]:
        """Return the mutants by their names."""
        paths = [path for file in self.files for path in sorted((ROOT / PACKAGE).glob(file))]
        places: dict[str, Callable[[], Mutant]] = {}
        for path in paths:
            file = str(path.relative_to(ROOT / PACKAGE))
            found = in_sql if path.suffix == ".sql" else in_python
            places |= {f"{file}: {key}": make for key, make in found(file, path.read_text(encoding="utf-8"))}
        chosen = sorted(places, key=lambda name: hashlib.sha256(name.encode()).digest())[: self.count]
        return {name: Planted(places[name](), self.tests) for name in chosen}


def in_sql(file: str, source: str) -> Iterator[tuple[str, Callable[[], Mutant]]]:
    """Iterate over the conditions that can be dropped, each a line of its own."""
    lines = source.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        text = line.strip()
        goes_on = _indent(following) > _indent(line)
        is_whole = (
            text.count("(") == text.count(")") and not text.endswith((";", ",", "then", " or")) and " as " not in text
        )
        is_only = text.startswith("and ") and Mutant((file,), text, "").places(source) == 1
        if is_only and is_whole and not goes_on:
            yield text, partial(Mutant, (file,), text, "")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def in_python(file: str, source: str) -> Iterator[tuple[str, Callable[[], Mutant]]]:
    """Iterate over the places of the functions that can be mutated."""
    numbers: Counter[str] = Counter()
    for function, node in _nodes(ast.parse(source), ""):
        for what, changed in _changes(node):
            place = f"{function} {what}"
            numbers[place] += 1
            yield f"{place} {numbers[place]}", partial(_replaced, file, source, node, changed)


def _nodes(parent: ast.AST, function: str) -> Iterator[tuple[str, ast.expr]]:
    """Iterate over the expressions in functions, but not over what is logged, asserted, or an annotation."""
    for name, value in ast.iter_fields(parent):
        if name in ("decorator_list", "annotation", "returns", "type_params"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or isinstance(node, (ast.Assert, ast.JoinedStr)) or _is_logged(node):
                continue
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                yield from _nodes(node, f"{function}.{node.name}" if function else node.name)
            else:
                if function and isinstance(node, ast.expr):
                    yield function, node
                yield from _nodes(node, function)


def _is_logged(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).startswith("logger.")


def _changes(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        turned = TURNED[type(node.ops[0])]()
        yield "comparison", ast.Compare(node.left, [turned], node.comparators)
    elif isinstance(node, ast.BoolOp):
        swapped = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and, or", ast.BoolOp(swapped, node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not", node.operand
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "number", ast.Constant(node.value + 1)


def _replaced(file: str, source: str, node: ast.expr, changed: ast.expr) -> Mutant:
    """Return the mutant with another expression in this place: with as many lines before it as make it the only one."""
    lines = [line.encode() for line in source.splitlines(keepends=True)]
    assert node.end_lineno is not None
    first, last = node.lineno - 1, node.end_lineno
    before, after = lines[first][: node.col_offset].decode(), lines[last - 1][node.end_col_offset :].decode()
    new = before + f"({ast.unparse(changed)})" + after
    while Mutant((file,), text := b"".join(lines[first:last]).decode(), "").places(source) > 1:
        first -= 1
        new = lines[first].decode() + new
    return Mutant((file,), text, new.strip())


def _store(names: str) -> tuple[str, ...]:
    folders = ("protocol", "postgres", "interfaces")
    files = {path.stem: path for folder in folders for path in (ROOT / "tests" / folder).glob("*.py")}
    return tuple(str(files[f"test_{name}"].relative_to(ROOT / "tests")) for name in names.split())


def _sql(names: str) -> tuple[str, ...]:
    return tuple(f"postgres/sql/{files()[name].parent.name}/{name}.sql" for name in names.split())


def _definitions(names: str) -> tuple[str, ...]:
    return tuple(f"postgres/definitions/internal/{name}.sql" for name in names.split())


DRAWN = {
    "tick-sql": Draw(
        5,
        _sql("mark submit confirm recover judge look"),
        _store("mark_and_submit publish_confirm_recover overlap_policies submitted_at_once recheck")
        + _store("groups failures after queues"),
    ),
    "worker-sql": Draw(
        4,
        _sql("start start_lost start_spaced finish_many finish heartbeat requeue revoke_failed give_up_start")
        + _sql("end_unstarted end_unstarted_many"),
        _store("reports min_gap people failures unreported"),
    ),
    "order-sql": Draw(
        4,
        _definitions("groups after after_written") + _sql("settle_downstream grant_slots"),
        _store("queues groups after diamond graph"),
    ),
    "writes": Draw(
        4,
        (
            *_definitions("row_trigger schedules validation"),
            "declare/columns.py",
            "declare/options.py",
            "declare/timing.py",
        ),
        ("unit/test_declare.py", *_store("row_trigger validation limits update api")),
    ),
    "planning": Draw(
        9,
        ("planning/*.py", "schedules/wallclock/*.py", "schedules/cron/*.py", "schedules/windows.py"),
        ("unit/planning", "unit/schedules"),
    ),
    "tick": Draw(
        6,
        ("beat/decide/*.py", "beat/send/*.py", "beat/database_clock.py"),
        ("unit/beat", *_store("failing_steps busy_postgres backfill shadow")),
    ),
    "worker": Draw(
        6,
        ("worker/start/*.py", "worker/report/*.py", "worker/stop/*.py"),
        ("unit/worker", *_store("reports waiting_reports"), "acceptance/test_worker_guard.py"),
    ),
    "drivers": Draw(
        4,
        tuple(f"postgres/{name}.py" for name in ("engine", "database", "arrays", "durations", "listen", "paramstyles")),
        (*_store("arrays listen session_settings busy_postgres reports"), "unit/test_pgbeat.py"),
    ),
    "rendering": Draw(
        3,
        ("beat/send/rendering/*.py",),
        ("unit/beat/test_rendering.py", "acceptance/test_rendering.py"),
    ),
}
