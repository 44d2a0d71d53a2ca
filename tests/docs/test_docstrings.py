"""The examples in the docstrings of the package run. (Those that need rows run in the tests of their module.)"""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import celery_pgbeat

# tests/interfaces/test_api_configuration.py, test_current.py and test_testing_kit.py run these, on a database with the
# rows that they speak of.
WITH_ROWS = (
    "celery_pgbeat.api.backfills",
    "celery_pgbeat.api.client",
    "celery_pgbeat.api.groups",
    "celery_pgbeat.api.methods.backfills",
    "celery_pgbeat.api.methods.changes",
    "celery_pgbeat.api.methods.groups",
    "celery_pgbeat.api.methods.jobs",
    "celery_pgbeat.api.methods.operations",
    "celery_pgbeat.api.methods.reading",
    "celery_pgbeat.api.methods.tasks",
    "celery_pgbeat.api.methods.work",
    "celery_pgbeat.testing.assertions",
    "celery_pgbeat.testing.kit",
    "celery_pgbeat.worker.stop.current",
)
# Loading it in a process that is no worker would do nothing, but its environment is the demo's.
LEFT_OUT = ("celery_pgbeat.cli.demo.app", "celery_pgbeat.embedded.watchdog")
# Its modules can be loaded in a project of Django's only: tests/django/test_set_up.py runs its examples.
OF_DJANGO = "celery_pgbeat.django."


def refuse_others(package: str) -> None:
    assert package.startswith(OF_DJANGO)


def examples() -> Iterator[doctest.DocTest]:
    for found in pkgutil.walk_packages(celery_pgbeat.__path__, "celery_pgbeat.", onerror=refuse_others):
        if found.name not in (*WITH_ROWS, *LEFT_OUT) and not found.name.startswith(OF_DJANGO):
            module = importlib.import_module(found.name)
            yield from (each for each in doctest.DocTestFinder(exclude_empty=True).find(module) if each.examples)


EXAMPLES = list(examples())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_example_of_a_docstring_runs(example: doctest.DocTest) -> None:
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


@pytest.mark.parametrize("name", ["settings.table.Settings", "errors.InvalidSchedule", "schedules.parse.parse"])
def test_the_examples_that_matter_are_among_them(name: str) -> None:
    assert f"celery_pgbeat.{name}" in {example.name for example in EXAMPLES}
