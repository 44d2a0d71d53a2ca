"""The parts that statements have in common."""

from __future__ import annotations

import pytest

from celery_pgbeat.postgres import fragments
from celery_pgbeat.postgres.migrate import checksum, definitions
from celery_pgbeat.postgres.statements import files, statement

TEXTS = {name: path.read_text(encoding="utf-8") for name, path in files().items()}


@pytest.mark.parametrize("name", fragments.FRAGMENTS)
def test_a_part_is_that_of_several_statements(name: str) -> None:
    assert len([text for text in TEXTS.values() if name in text]) > 1


@pytest.mark.parametrize("name", TEXTS)
def test_no_statement_is_sent_with_the_name_of_a_part(name: str) -> None:
    sent = statement(name, "jobs")

    assert [] == [each for each in (*fragments.FRAGMENTS, "{is_on", "{schema}") if each in sent]


def test_a_definition_with_another_part_is_another_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    before = checksum()
    used = next(name for name in fragments.FRAGMENTS if any(name in text for _, text in definitions()))

    monkeypatch.setitem(fragments.FRAGMENTS, used, "true")

    assert before != checksum.__wrapped__()
