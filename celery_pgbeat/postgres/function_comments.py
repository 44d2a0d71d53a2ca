"""What a database tool shows of an internal function: the first sentence of the comment above it, after `Internal: `.

The functions that people call have their comments in `definitions/public/comments.sql`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

CREATED = re.compile(r"((?:^--.*\n)*)^create or replace function \{schema\}\.(\w+)", re.MULTILINE)
COMMENTED = re.compile(r"^comment on function \{schema\}\.(\w+)", re.MULTILINE)
SENTENCE = re.compile(r".+?[.?](?=\s|$)")
PARAMETER = re.compile(r"%\((\w+)\)s")


def function_comments(text: str, name: str = "", head: str = "") -> str:
    """Return a `comment on` for each internal function in a text; `head` is the comment of the function `name`."""
    comments = []
    for above, function in CREATED.findall(text):
        sentence = _first_sentence(head if function == name else above)
        if sentence and function not in _public():
            comments.append(f"comment on function {{schema}}.{function} is 'Internal: {sentence}';\n")
    return "".join(comments)


@cache
def _public() -> frozenset[str]:
    comments = resources.files("celery_pgbeat.postgres") / "definitions" / "public" / "comments.sql"
    return frozenset(COMMENTED.findall(comments.read_text(encoding="utf-8")))


def _first_sentence(comment: str) -> str:
    words = " ".join(line.removeprefix("--").strip() for line in comment.splitlines())
    sentence = SENTENCE.match(words)
    return PARAMETER.sub(r"`\1`", sentence[0]).replace("'", "''") if sentence else ""
