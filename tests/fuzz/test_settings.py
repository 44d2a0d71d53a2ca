"""Any value of a setting is accepted, or refused with the name of the setting."""

from __future__ import annotations

import random

from celery_pgbeat.errors import InvalidSetting
from celery_pgbeat.settings import SETTINGS, Settings
from tests.fuzz.fuzzing import MARKS, attack, quickly
from tests.harness.values import DURATIONS, odd

pytestmark = MARKS

NAMES = [f"pgbeat_{setting.name}" for setting in SETTINGS]
LIKELY = (*DURATIONS, "postgresql://a@b/c", "https://x", "http://[", "*", "a" * 64, ["a.*"], 10, "10")


def test_settings_are_accepted_or_refused_by_name() -> None:
    attack(check_settings)


def check_settings(numbers: random.Random) -> None:
    names = numbers.sample(NAMES, numbers.choice((1, 1, 2, 5)))
    given = {name: numbers.choice((numbers.choice(LIKELY), odd(numbers))) for name in names}
    try:
        quickly(lambda: Settings.from_mapping(given))
    except InvalidSetting as refusal:
        check_names(str(refusal), names)


def check_names(refusal: str, names: list[str]) -> None:
    assert len(refusal) < 5_000
    assert any(name in refusal for name in names), refusal
