r"""The graph of periodic tasks in the language DOT, which Graphviz draws. Pure.

A text in quotes ends at a quote that no backslash escapes. In a label, but not in the name of a node, a backslash also
begins an escape such as `\n` or `\N`, and `&` one of HTML. So what is not a plain letter is written in another way in
each of the two.
"""

from __future__ import annotations

from celery_pgbeat.api.graph import Graph, GraphNode
from celery_pgbeat.cli.output.graph_lines import runs_in_words
from celery_pgbeat.cli.output.terminal import EMPTY
from celery_pgbeat.cli.output.times import localised
from celery_pgbeat.texts.safe_text import one_line

LINE = r"\n"  # ends a line of a label
STYLES = {"success": "solid", "finish": "dashed"}


def dot_of(graph: Graph) -> str:
    r"""Return the text that Graphviz draws: a solid edge asks for success, a dashed one for any end.

    Example:
        >>> print(dot_of(Graph([GraphNode("a", "@daily", None, "success", "waiting")])))
        digraph periodic_tasks {
            rankdir=LR
            node [shape=box]
            "a" [label="a\n@daily\nwaiting"]
        }
    """
    nodes = [f"    {identifier(node.name)} [label={label(node)}]" for node in graph.nodes]
    edges = [
        f"    {identifier(first.name)} -> {identifier(then.name)} [style={STYLES[then.after_condition]}]"
        for first, then in graph.edges
    ]
    return "\n".join(["digraph periodic_tasks {", "    rankdir=LR", "    node [shape=box]", *nodes, *edges, "}"])


def identifier(name: str) -> str:
    r"""Return a name in quotes, as the name of a node: another one for each name.

    Example:
        >>> print(identifier("say \"hi\" to C:\\"))
        "say \"hi\" to C:\\"
    """
    return one_line(f'"{_escaped(name)}"')


def label(node: GraphNode) -> str:
    r"""Return what is written into the box of a task.

    Example:
        >>> print(label(GraphNode("R&D \\N", None, ["a"], "finish", "paused")))
        "R&amp;D \\N\nafter 'a' (finish)\npaused"
    """
    texts = (node.name, runs_in_words(node), localised(node.state))
    shown = [_escaped(one_line(text)).replace("&", "&amp;") for text in texts if text != EMPTY]
    return f'"{LINE.join(shown)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
