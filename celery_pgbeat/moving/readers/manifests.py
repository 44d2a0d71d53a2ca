"""Reads manifests of Kubernetes: JSON by the standard library, YAML by PyYAML if it is installed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from celery_pgbeat.errors import InvalidSource, MissingExtra
from celery_pgbeat.safe_text import one_line

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
    try:
        return list(yaml.safe_load_all(text))
    except (yaml.YAMLError, RecursionError) as error:
        raise InvalidSource(f"the manifests are neither JSON nor YAML: {one_line(str(error))}") from None
