"""What holds for the whole house, checked by a machine."""

from __future__ import annotations

import configparser
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import MEASURES, parser
from benchmarks.results import Figure, Run, append, appendable, read
from celery_pgbeat.postgres import beat_queries
from celery_pgbeat.postgres.migrate import definitions, migrations
from celery_pgbeat.postgres.statements import parameters, rendered

ROOT = Path(__file__).parents[2]
SQL = sorted((ROOT / "celery_pgbeat" / "postgres" / "sql").glob("*/*.sql"))
EVERY_SQL = sorted((ROOT / "celery_pgbeat").rglob("*.sql"))


def test_no_module_imports_what_its_contract_forbids() -> None:
    checked = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_contract_of_wallclock_names_each_folder_of_a_kind() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / "setup.cfg", encoding="utf-8")
    named = contracts["importlinter:contract:wallclock"]["forbidden_modules"].split()
    folders = {path.parent.name for path in (ROOT / "celery_pgbeat" / "schedules").glob("*/reader.py")}

    assert len(folders) > 5
    assert set() == {f"celery_pgbeat.schedules.{folder}" for folder in folders} - set(named)


@pytest.mark.parametrize("path", SQL, ids=lambda path: path.stem)
def test_a_statements_first_line_says_in_a_sentence_what_it_does(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]

    assert re.fullmatch(r"-- [A-Z].*[.;:,\w]", first)


@pytest.mark.parametrize(
    "method",
    [name for name, _ in inspect.getmembers(beat_queries.BeatQueries, inspect.isfunction) if not name.startswith("_")],
)
def test_a_store_method_gives_its_statement_just_the_parameters_that_it_has(method: str) -> None:
    source = inspect.getsource(getattr(beat_queries.BeatQueries, method))
    given = set(re.findall(r"^\s+(?:_run\()?(\w+)=", source, re.MULTILINE)) | set(re.findall(r"[(,] (\w+)=", source))

    assert parameters(method) <= given | {"beat"}


def test_a_schema_name_is_quoted_wherever_it_is_used() -> None:
    assert rendered("select {schema}.now(), {channel}", "jobs") == "select \"jobs\".now(), 'jobs'"


@pytest.mark.parametrize("module", ["celery_pgbeat", "celery_pgbeat.cli"])
def test_what_every_celery_command_imports_is_light(module: str) -> None:
    code = f"import sys, {module}; print([name for name in ('sqlalchemy', 'psycopg2', 'redis') if name in sys.modules])"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert seen.stdout.strip() == "[]"


@pytest.mark.parametrize("path", EVERY_SQL, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_line_of_sql_is_over_long_or_ends_in_blanks(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()

    # A sentence of `comment on` is one string.
    assert [] == [line for line in lines if len(line) > 120 and not re.match(r"\s*'|comment on ", line)]
    assert [] == [line for line in lines if line != line.rstrip()]


@pytest.mark.parametrize("path", EVERY_SQL, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_sql_is_ascii_so_that_every_server_and_every_psql_reads_it(path: Path) -> None:
    assert [] == [line for line in path.read_text(encoding="utf-8").splitlines() if not line.isascii()]


def test_the_order_of_the_definitions_names_each_file_once() -> None:
    folder = ROOT / "celery_pgbeat" / "postgres" / "definitions"
    installed = [name for name, _ in definitions()]

    assert len(set(installed)) == len(installed)
    assert {f"{path.parent.name}/{path.stem}" for path in folder.glob("*/*.sql")} <= set(installed)


def test_what_is_filled_into_the_definitions_is_ascii_too() -> None:
    texts = [text for _, text in [*definitions(), *migrations()]]

    assert [] == [line for text in texts for line in rendered(text, "pgbeat").splitlines() if not line.isascii()]


def test_the_benchmarks_can_be_started() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert 0 == done.returncode, done.stderr
    assert "soak" in done.stdout


@pytest.mark.parametrize(
    ("out", "reason"),
    [
        ("/dev/null", "is no file"),
        ("nowhere/results.json", "cannot be written"),
        (".", "is no file"),
        ("other.json", "has no results of measures"),
        ("empty.json", "has no results of measures"),
    ],
)
def test_an_output_that_cannot_be_used_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], out: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("other.json").write_text('{"a": 1}')
    Path("empty.json").touch()

    for measure in MEASURES:
        with pytest.raises(SystemExit):
            parser().parse_args([measure, "--out", out])

        assert f"argument --out: {out!r} {reason}" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        parser().parse_args(["report", out])
    assert "argument results: " in capsys.readouterr().err


def test_results_are_written_into_a_new_file_and_appended_to_one_of_results(tmp_path: Path) -> None:
    path = appendable(str(tmp_path / "results.json"))
    for _ in range(2):
        append(path, Run("fire", "now", {}, {}, [Figure("rate", "jobs", [1.0])]))

    assert 2 == len(read(parser().parse_args(["fire", "--out", str(path)]).out))
