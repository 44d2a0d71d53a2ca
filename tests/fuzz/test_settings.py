"""Settings are taken, or refused by their name, whatever stands there."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from hypothesis import strategies as st

from celery_pgbeat.errors import InvalidSetting
from celery_pgbeat.settings import Settings
from tests.fuzz.fuzzing import MARKS, fuzzed, quickly
from tests.fuzz.values import anything, spans

pytestmark = MARKS

likely = st.one_of(
    anything, spans, st.sampled_from(("postgresql://a@b/c", "https://x", "http://[", "*", "a" * 64, ["a.*"]))
)
configurations = st.fixed_dictionaries({}, optional={f"pgbeat_{setting.name}": likely for setting in fields(Settings)})


@fuzzed(configuration=configurations)
def test_settings_are_taken_or_refused_by_their_name(configuration: dict[str, Any]) -> None:
    try:
        quickly(lambda: Settings.from_mapping(configuration))
    except InvalidSetting as refusal:
        check_names(str(refusal), configuration)


def check_names(refusal: str, configuration: dict[str, Any]) -> None:
    assert len(refusal) < 5_000
    assert any(name in refusal for name in configuration), refusal
