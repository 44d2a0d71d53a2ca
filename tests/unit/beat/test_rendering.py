from __future__ import annotations

import functools
import json
import uuid
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from celery.app.task import Task
from celery.utils.saferepr import saferepr
from hypothesis import given
from hypothesis import strategies as st
from kombu.exceptions import SerializerNotInstalled
from kombu.serialization import codec, dumps, registry

from celery_pgbeat.beat.send.rendering import renderer
from celery_pgbeat.beat.send.rendering.body import Body
from celery_pgbeat.beat.send.rendering.eligibility import comes_from, is_plain_task
from celery_pgbeat.beat.send.rendering.message_fields import (
    HEADERS,
    EncodedArguments,
    MessageFields,
    ReprLimits,
    fields_in,
)
from celery_pgbeat.beat.send.rendering.message_template import REMEMBERED_UP_TO, MessageTemplate, template_key
from celery_pgbeat.beat.send.rendering.redis_writer import _random_uuids
from tests.harness.outbox import job

ODD = ["'", '"', "\\", "it's", "[{", "\x7f", "\xa0", "\u200b", "\n", "ü", "x" * 40]
TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(ODD)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(VALUES, max_size=3) | st.dictionaries(TEXTS, VALUES, max_size=3), st.integers(-3, 3), st.integers(0, 4))
def test_arguments_are_shown_as_celery_shows_them(value: Any, longer: int, levels: int) -> None:
    text = json.dumps(value, ensure_ascii=False)

    for longest in (None, 1024, len(repr(value)) + longer):
        assert saferepr(value, longest, maxlevels=levels) == ReprLimits(longest, levels)(text, value)


@pytest.mark.parametrize("text", ODD)
def test_a_text_is_shown_as_celery_shows_it(text: str) -> None:
    for value in ([text], {text: text}):
        assert saferepr(value, 1024) == ReprLimits(1024, 3)(json.dumps(value, ensure_ascii=False), value)


@pytest.mark.parametrize("value", [[[[[1]]]], [[[[]]]], {"a": {"b": {"c": {"d": 1}}}}, [{"a": [{}]}]])
@pytest.mark.parametrize("levels", [1, 2, 3, 4])
def test_deeply_nested_values_are_left_out_as_celery_does(value: Any, levels: int) -> None:
    assert saferepr(value, 1024, maxlevels=levels) == ReprLimits(1024, levels)(json.dumps(value), value)


@pytest.mark.parametrize("value", [[1, "ü"], {"a": [True, None, 1.5]}, []])
def test_plain_arguments_are_shown_without_asking_celery(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("celery_pgbeat.beat.send.rendering.message_fields.saferepr")

    assert repr(value) == ReprLimits(1024, 3)(json.dumps(value, ensure_ascii=False), value)


def content(serializer: str) -> Body:
    plain = dict.fromkeys(("check", "embed", "compression", "countdown", "expires_after", "eta"))
    limits = ReprLimits(1024, 3)
    return Body(embed_text="null", serializer=serializer, show_args=limits, show_kwargs=limits, **plain)


@given(st.lists(VALUES, max_size=3), st.dictionaries(TEXTS, VALUES, max_size=3))
def test_a_body_is_serialized_as_kombu_serializes_it(args: list[Any], kwargs: dict[str, Any]) -> None:
    said = content("json").encode(json.dumps(args, ensure_ascii=False), json.dumps(kwargs, ensure_ascii=False))

    assert dumps((args or (), kwargs, None), serializer="json")[2] == said.body
    assert (saferepr(args or (), 1024, maxlevels=3), saferepr(kwargs, 1024, maxlevels=3)) == said[1:]


@pytest.mark.parametrize("args", ['["row 1", 2, true, null, {"a": []}]', "[]"])
def test_plain_arguments_are_put_into_a_body_as_they_are_written(args: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("celery_pgbeat.beat.send.rendering.body.encoded")

    assert f"[{args}, {{}}, null]" == content("json").encode(args, "{}").body


@pytest.mark.parametrize("number", ["1.50", "-0", "1e2"])
def test_a_number_is_written_as_kombu_writes_it(number: str) -> None:
    assert (
        dumps(([json.loads(number)], {}, None), serializer="json")[2]
        == content("json").encode(f"[{number}]", "{}").body
    )


def test_a_replacement_of_kombus_json_encoder_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._encoders, "json", codec("application/json", "utf-8", lambda _: "theirs"))

    assert "theirs" == content("json").encode("[]", "{}").body
    with pytest.raises(SerializerNotInstalled, match="unheard-of"):
        content("unheard-of").encode("[]", "{}")


def test_a_header_with_another_value_is_not_a_field() -> None:
    fields = MessageFields("id", "row", "noon", None, None, None, arguments=EncodedArguments("[]", "()", "{}"))
    headers = {"id": "id", "root_id": "a root of its own", "argsrepr": "()", "eta": None}

    assert {"id": "id", "argsrepr": "argsrepr"} == fields_in(headers, HEADERS, fields)


@pytest.mark.parametrize(("length", "encoded"), [(REMEMBERED_UP_TO, 1), (REMEMBERED_UP_TO + 1, 2)])
def test_only_short_arguments_are_remembered_so_that_they_do_not_fill_the_memory(length: int, encoded: int) -> None:
    encodings: list[str] = []
    clocks: Any = None
    parts: Any = SimpleNamespace(
        encode=lambda args, _: encodings.append(args), fields=lambda *_: None, prepare=id, render=lambda *_: "message"
    )
    template = MessageTemplate(None, body=parts, template=parts, declared=())
    one = job(args="[" + "1" * (length - 4) + "]", kwargs="{}")
    assert length == len(one.args) + len(one.kwargs)

    for _ in range(2):
        template.render(one, clocks)

    assert encoded == len(encodings)


def test_random_uuids_are_uuids_of_version_4_and_none_comes_twice() -> None:
    texts = list(islice(_random_uuids(), 1000))

    assert texts == [str(uuid.UUID(text)) for text in texts]
    assert {(4, uuid.RFC_4122)} == {(uuid.UUID(text).version, uuid.UUID(text).variant) for text in texts}
    assert 1000 == len(set(texts))


def test_jobs_with_one_template_key_differ_only_in_fields() -> None:
    one = job()
    same = replace(job(), args="[2]", kwargs="{}", periodic_task="other", schedule=None, timezone=None)

    assert template_key(one) == template_key(same)


@pytest.mark.parametrize(
    "change",
    [
        {"task": "shop.other"},
        {"queue": "q2"},
        {"priority": 1},
        {"origin": "manual"},
        {"run": 1},
        {"sensitive": True},
        {"max_run_time": timedelta(minutes=1)},
        {"options": {"expires": 1}},
    ],
)
def test_any_other_difference_makes_another_template_key(change: dict[str, Any]) -> None:
    assert template_key(job()) != template_key(job(**change))


@pytest.mark.parametrize("value", [1, 1.0, True, "1", [1], None])
def test_options_that_are_equal_in_python_but_not_in_a_message_make_two_template_keys(value: Any) -> None:
    values = [1, 1.0, True, "1", [1], None]

    keys = [template_key(job(options={"headers": {"a": each}})) for each in values]

    assert 1 == keys.count(template_key(job(options={"headers": {"a": value}})))


def test_a_function_is_recognised_by_its_globals_not_by_its_attributes() -> None:
    @functools.wraps(Task.apply_async)
    def wrapped(*args: Any, **kwargs: Any) -> Any: ...

    assert comes_from(Task.apply_async, "celery.app.task")
    assert "celery.app.task" == wrapped.__module__
    assert not comes_from(wrapped, "celery.app.task")
    assert not comes_from(len, "builtins")


@pytest.mark.parametrize(
    ("name", "value"), [("_dump_pydantic_arguments", print), ("__v2_compat__", True), ("apply_async", print)]
)
def test_a_task_that_overrides_sending_is_not_rendered(name: str, value: Any) -> None:
    app = Celery("plain", set_as_current=False)

    def probe() -> None: ...

    task = app.task(name="shop.probe", shared=False)(probe)
    app.finalize()

    assert is_plain_task(app.tasks["shop.probe"])
    setattr(app.tasks["shop.probe"], name, value)
    assert not is_plain_task(task)


def test_a_connection_made_while_messages_are_rendered_is_used_for_the_next_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread that renders moves the shapes about; the one that connects must not touch them."""
    known: list[bool] = []

    def reconnect(_name: str) -> bool:
        made.connect(SimpleNamespace(connection=None))
        known.append("shape" in made._templates)
        return True

    monkeypatch.setattr(renderer, "_writer_for", lambda _: SimpleNamespace())
    monkeypatch.setattr(renderer, "send_path", lambda _: "the path")
    sender: Any = SimpleNamespace(app=Celery("rendering", broker="memory://", set_as_current=False))
    made, one = renderer.Renderer(sender, reconnect), job()
    made.connect(SimpleNamespace(connection=None))
    made.render([], one.scheduled_for)
    made._templates["shape"] = object.__new__(MessageTemplate)

    made.render([one], one.scheduled_for)
    assert [True] == known
    made.render([], one.scheduled_for)
    assert "shape" not in made._templates
