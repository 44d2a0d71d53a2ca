"""Each mutant can be planted in the code as it is; `python -m tests.mutants` tries whether tests find it."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.planted import ROOT
from tests.mutants.table import SUBJECTS, mutants_of


@pytest.mark.parametrize("subject", SUBJECTS)
def test_each_mutant_fits_the_code(subject: str) -> None:
    for planted in mutants_of(subject).values():
        for file, text in planted.sources().items():
            assert file.read_text() != text
            if file.suffix == ".py":
                ast.parse(text)
        assert [] == [test for test in planted.tests if not (ROOT / "tests" / test).exists()]


def test_each_equivalent_mutant_is_one_and_has_a_reason() -> None:
    assert set() == set(EQUIVALENT) - {name for subject in SUBJECTS for name in mutants_of(subject)}
    assert all(EQUIVALENT.values())
