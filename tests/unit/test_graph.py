"""The graph of periodic tasks that run after others: its order, its text and its DOT, without a database."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from celery_pgbeat.api.graph import Graph, GraphNode, after_in_words, in_order, read_graph
from celery_pgbeat.cli.output.graph_dot import dot_of, identifier, label
from celery_pgbeat.cli.output.graph_lines import DEEPEST, lines_of, runs_in_words

LONG = 3_000  # longer than Python's stack is deep
DIAMOND = {"extract": None, "load": ["extract"], "clean": ["extract"], "report": ["load", "clean"], "mail": ["report"]}


def row(name: str, after: list[str] | None = None, **columns: Any) -> dict[str, Any]:
    values = {"schedule": None if after else "@daily", "after_condition": "success", "state": "waiting", **columns}
    return {"name": name, "after": after, **values}


def graph_of(after: dict[str, list[str] | None]) -> Graph:
    return read_graph([row(name, names) for name, names in after.items()])


def written(graph: Graph) -> list[str]:
    """Return each line as its branch and its name; one that only refers to another line ends in dots."""
    return [f"{line.branch}{line.node.name}{'...' if line.is_reference else ''}" for line in lines_of(graph)]


# The order.


def test_the_earliest_comes_first_and_else_the_names_decide() -> None:
    graph = graph_of({"b": ["z"], "z": None, "a": None, "c": ["a", "b"]})

    assert ["a", "z", "b", "c"] == [node.name for node in graph.nodes]
    assert [("z", "b"), ("a", "c"), ("b", "c")] == [(first.name, then.name) for first, then in graph.edges]


def test_a_task_that_is_not_shown_makes_no_edge() -> None:
    graph = graph_of({"b": ["a", "elsewhere"], "a": None})

    assert ["a", "b"] == [node.name for node in graph.nodes]
    assert [("a", "b")] == [(first.name, then.name) for first, then in graph.edges]


def test_rows_that_wait_for_each_other_are_shown_all_the_same() -> None:
    graph = graph_of({"a": ["b"], "b": ["a"], "c": ["b"], "first": None})

    assert ["first", "a", "b", "c"] == [node.name for node in graph.nodes]
    assert ["first"] == in_order({node.name: node.after for node in graph.nodes})
    assert {"first", "a", "b", "c"} == {line.node.name for line in lines_of(graph)}


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a"], "after 'a'"),
        (["a", "a"], "after 'a'"),
        (["a", "b"], "after 'a' and 'b'"),
        (list("abcde"), "after 'a', 'b', 'c', 'd' and 'e'"),
        (list("abcdef"), "after 'a', 'b', 'c', 'd' and 2 others"),
    ],
)
def test_after_which_tasks_one_runs_is_said_in_a_few_words(names: list[str], words: str) -> None:
    assert words == after_in_words(names)


# The text.


def test_each_task_is_followed_by_what_runs_after_it() -> None:
    graph = graph_of({"b": ["a"], "c": ["b"], "a": None, "d": ["a"], "z": None, "y": ["z"]})

    assert ["a", "├─ b", "│  └─ c", "└─ d", "z", "└─ y"] == written(graph)


def test_a_task_after_several_is_written_once_below_all_of_them() -> None:
    assert [
        "extract",
        "├─ clean",
        "│  └─ report...",
        "└─ load",
        "   └─ report",
        "      └─ mail",
    ] == written(graph_of(DIAMOND))


def test_two_roots_of_one_task_have_one_tree_and_one_reference() -> None:
    assert ["a", "└─ c...", "b", "└─ c", "   └─ d"] == written(
        graph_of({"c": ["a", "b"], "a": None, "b": None, "d": ["c"]})
    )


def test_a_net_of_many_layers_has_a_line_for_each_edge_and_not_for_each_path() -> None:
    layers = {
        f"{level:02}-{n}": [f"{level - 1:02}-{m}" for m in range(5)] or None for level in range(1, 40) for n in range(5)
    }
    graph = graph_of({**layers, **{f"00-{n}": None for n in range(5)}})

    lines = lines_of(graph)

    full = [line.node.name for line in lines if not line.is_reference]
    assert sorted(node.name for node in graph.nodes) == sorted(full)
    assert len(lines) <= len(graph.edges) + 2 * len(graph.nodes)
    places = {name: place for place, name in enumerate(full)}
    assert all(places[first.name] < places[then.name] for first, then in graph.edges)


def test_a_long_chain_goes_on_at_the_left_margin() -> None:
    names = [f"{n:04}" for n in range(LONG)]
    begun = time.monotonic()
    graph = graph_of({name: [names[n - 1]] if n else None for n, name in enumerate(names)})

    lines = lines_of(graph)

    assert names == [line.node.name for line in lines if not line.is_reference]
    assert 3 * DEEPEST == max(len(line.branch) for line in lines)
    deep = DEEPEST
    assert [(f"{deep:04}", True), (f"{deep:04}", False)] == [
        (line.node.name, line.is_reference) for line in lines[deep : deep + 2]
    ]
    assert "" == lines[deep + 1].branch
    assert dot_of(graph).count("->") == LONG - 1
    assert time.monotonic() - begun < 5


def test_when_a_task_runs_is_said_with_the_condition_that_is_not_the_usual_one() -> None:
    def words(**columns: Any) -> str:
        return runs_in_words(GraphNode(**row("x", **columns)))

    assert "@daily" == words()
    assert "-" == words(schedule=None)
    assert "after 'a'" == words(after=["a"])
    assert "@hourly, after 'a' and 'b' (finish)" == words(
        after=["a", "b"], schedule="@hourly", after_condition="finish"
    )


# DOT.


ODD = [
    'say "hi"',
    "C:\\",
    "\\N",
    "a\\nb",
    "a\\",
    '\\"',
    "R&amp;D",
    "<b>",
    "ünï 雪",
    "a\u2028b",
    "a\\u2028b",
    "{x|y}",
    "->",
    "",
]


def read_back(text: str) -> str:
    """Return the text between two quotes as Graphviz reads it."""
    assert re.fullmatch(r'"(?:[^"\\\n]|\\.)*"', text), text
    return text[1:-1].replace('\\"', '"')


@pytest.mark.parametrize("name", ODD)
def test_an_odd_name_stays_within_its_quotes_on_one_line(name: str) -> None:
    text = dot_of(graph_of({name: None, "then": [name]}))

    assert 2 + 2 + 1 + 2 == len(text.splitlines()) - 0
    assert text.replace("\n", "").isprintable()
    for line in text.splitlines():
        for quoted in re.findall(r'"(?:[^"\\]|\\.)*"', line):
            read_back(quoted)
        assert 0 == re.sub(r'"(?:[^"\\]|\\.)*"', "", line).count('"')


def test_two_names_are_two_nodes() -> None:
    assert len(ODD) == len({identifier(name) for name in ODD})


@pytest.mark.parametrize("name", [name for name in ODD if name.isprintable()])
def test_a_label_shows_the_name_as_it_is(name: str) -> None:
    """Graphviz takes the quotes away, then reads what a backslash escapes, then what `&` begins."""
    first = read_back(label(GraphNode(**row(name, state="due")))).split("\\n@daily")[0]
    plain = re.sub(r"\\(.)", r"\1", first)

    assert name == plain.replace("&amp;", "&")


def test_an_edge_is_solid_for_success_and_dashed_for_any_end() -> None:
    graph = read_graph([row("a"), row("b", ["a"]), row("c", ["a"], after_condition="finish")])

    assert [
        "digraph periodic_tasks {",
        "    rankdir=LR",
        "    node [shape=box]",
        r'    "a" [label="a\n@daily\nwaiting"]',
        r"""    "b" [label="b\nafter 'a'\nwaiting"]""",
        r"""    "c" [label="c\nafter 'a' (finish)\nwaiting"]""",
        '    "a" -> "b" [style=solid]',
        '    "a" -> "c" [style=dashed]',
        "}",
    ] == dot_of(graph).splitlines()


def test_a_graph_of_nothing_is_valid_too() -> None:
    assert dot_of(Graph(())).splitlines()[-1] == "}"
    assert [] == lines_of(Graph(()))
