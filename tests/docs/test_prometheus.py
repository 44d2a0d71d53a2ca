"""The rules and the dashboard of the example for Prometheus name the metrics that a beat has, and all of them."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any, cast

import pytest
import yaml

from celery_pgbeat.measures.endpoint import BeatMetrics
from celery_pgbeat.measures.gauges import Gauges, Reading
from celery_pgbeat.measures.tally import Tally
from tests.docs.checkers import checker, require_program
from tests.docs.pages import ROOT

EXAMPLE = ROOT / "examples" / "prometheus"
SAMPLE = re.compile(r"\bpgbeat_\w+")
LABELS = re.compile(r"by \(([\w, ]*)\)")
OF_TARGETS = {"instance", "le"}  # labels that Prometheus adds, and that of every histogram


class OneReading(Gauges):
    """The gauges of a cluster in which something of everything happens."""

    def __init__(self) -> None:
        pass

    def read(self) -> Reading:
        return Reading(due=1, overdue=1, active={}, beats=2, alerts=1, refused_declarations=1)


def samples() -> dict[str, set[str]]:
    """Return the name of each sample that a beat serves, and its labels."""
    tally = Tally()
    tally.skip({"overlap": 1})
    tally.late([1.0])
    tally.cycle_ended(broker_up=True)
    found: dict[str, set[str]] = {}
    for family in BeatMetrics(tally, OneReading()).collect():
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((EXAMPLE / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    return cast("list[dict[str, Any]]", group["rules"])


def panels() -> list[dict[str, Any]]:
    text = (EXAMPLE / "dashboard.json").read_text(encoding="utf-8")
    return cast("list[dict[str, Any]]", json.loads(text)["panels"])


def queries() -> list[str]:
    """Return every query of the rules and of the dashboard."""
    return [rule["expr"] for rule in rules()] + [target["expr"] for each in panels() for target in each["targets"]]


def test_every_query_names_only_samples_and_labels_that_a_beat_has() -> None:
    known = samples()
    for query in queries():
        names = SAMPLE.findall(query)
        labels = {label.strip() for by in LABELS.findall(query) for label in by.split(",")}

        assert names, query
        assert set(names) <= known.keys(), query
        assert labels <= OF_TARGETS.union(*(known[name] for name in names)), query


def test_every_metric_is_in_the_dashboard() -> None:
    shown = {name for each in panels() for target in each["targets"] for name in SAMPLE.findall(target["expr"])}

    assert samples().keys() == {*shown} | {name for name in samples() if name.endswith("_created")}


def test_every_metric_that_shows_a_fault_has_a_rule() -> None:
    ruled = {name for rule in rules() for name in SAMPLE.findall(rule["expr"])}
    no_faults = {
        "sent_total",
        "recovered_total",
        "skipped_total",
        "due",
        "lateness_seconds_sum",
        "lateness_seconds_count",
    }

    assert samples().keys() - ruled == {f"pgbeat_{name}" for name in no_faults}


def test_each_rule_has_a_time_at_which_it_fires_in_the_test_of_promtool() -> None:
    tests = yaml.safe_load((EXAMPLE / "alerts_test.yml").read_text(encoding="utf-8"))["tests"]
    fired = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case.get("exp_alerts")}

    assert {rule["alert"] for rule in rules()} == fired


def test_a_rule_that_names_a_target_in_its_summary_keeps_its_label() -> None:
    named = [rule for rule in rules() if "$labels.instance" in rule["annotations"]["summary"]]

    assert named
    assert [] == [rule["alert"] for rule in named if re.search(r"\b(min|max|sum|avg)\b", rule["expr"])]


def test_the_counters_are_read_as_rates_and_the_gauges_are_not() -> None:
    for query in queries():
        for name in SAMPLE.findall(query):
            counted = name.endswith(("_total", "_bucket", "_sum", "_count"))
            assert counted == bool(re.search(rf"(rate|increase)\({name}[\[{{]", query)), query


def test_the_page_lists_every_metric() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    listed = {name.partition("{")[0] for name in re.findall(r"^\| `(pgbeat_[\w{}]+)` \|", page, re.MULTILINE)}

    assert {re.sub(r"_(bucket|sum|count)$", "", name) for name in samples()} == listed


def test_the_panels_do_not_overlap_and_have_numbers_of_their_own() -> None:
    ids = [each["id"] for each in panels()]
    places = [
        (x, y)
        for each in panels()
        for x in range(each["gridPos"]["x"], each["gridPos"]["x"] + each["gridPos"]["w"])
        for y in range(each["gridPos"]["y"], each["gridPos"]["y"] + each["gridPos"]["h"])
    ]

    assert len(set(ids)) == len(ids)
    assert len(set(places)) == len(places)
    assert {True} == {0 <= x < 24 for x, _ in places}
    assert {"${datasource}"} == {target["datasource"]["uid"] for each in panels() for target in each["targets"]}


def test_every_query_is_one_of_promql() -> None:
    parser = checker("promql_parser", "promql-parser")

    for query in queries():
        parser.parse(query.replace("$__rate_interval", "5m"))
    with pytest.raises(ValueError, match="parenthesis"):
        parser.parse("max(pgbeat_beats")


def test_promtool_takes_the_configuration_and_the_rules_say_what_they_should() -> None:
    require_program("promtool")
    for words in (["check", "config", "prometheus.yml"], ["test", "rules", "alerts_test.yml"]):
        done = subprocess.run(
            ["promtool", *words], cwd=EXAMPLE, capture_output=True, text=True, timeout=60, check=False
        )

        assert done.returncode == 0, done.stdout + done.stderr
