"""Reads manifests of Kubernetes: JSON by the standard library, YAML by PyYAML if it is installed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from celery_pgbeat.errors import InvalidSource, MissingExtra
from celery_pgbeat.texts.safe_text import one_line

Manifest = Mapping[str, Any]


def manifests(text: str) -> Iterator[Manifest]:
    """Iterate over the objects in a text; a list is its items.

    Raises:
        InvalidSource: it is neither JSON nor YAML.
        MissingExtra: it is no JSON, and PyYAML is not installed.

    Example:
        >>> list(manifests('{"kind": "List", "items": [{"kind": "CronJob"}]}'))
        [{'kind': 'CronJob'}]
    """
    for document in _documents(text):
        if not isinstance(document, Mapping):
            continue
        items = document.get("items")
        yield from (item for item in items if isinstance(item, Mapping)) if isinstance(items, list) else [document]


def _documents(text: str) -> list[Any]:
    try:
        return [json.loads(text)]
    except RecursionError:
        raise InvalidSource("the manifests are nested too deeply to be read") from None
    except ValueError:
        pass
    try:
        import yaml
    except ImportError:
        raise MissingExtra(
            "the manifests are no JSON: write them with kubectl get cronjobs -o json, or read YAML with "
            "pip install 'celery-pgbeat[yaml]'"
        ) from None

    class Loader(yaml.SafeLoader):
        """Refuses aliases: a few lines of them stand for gigabytes."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                alias = self.peek_event()
                raise InvalidSource(
                    f"line {alias.start_mark.line + 1} of the manifests has the alias *{one_line(alias.anchor, 40)}: "
                    "write out what it stands for, as kubectl get cronjobs -o yaml does"
                )
            return super().compose_node(parent, index)

    try:
        return list(yaml.load_all(text, Loader))
    except (yaml.YAMLError, RecursionError) as error:
        raise InvalidSource(f"the manifests are neither JSON nor YAML: {one_line(str(error))}") from None
