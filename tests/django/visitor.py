"""A person who uses the project in a browser without script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from tests.harness.html import Seen, seen

TASKS = "/admin/pgbeat/periodictask/"


class Visitor:
    """A browser with the session of a user."""

    def __init__(self, user: Any = None) -> None:
        from django.test import Client

        self.client = Client(enforce_csrf_checks=True)
        if user is not None:
            self.client.force_login(user)

    def open(self, path: str, **parameters: Any) -> Seen:
        """Open an address."""
        return self._seen(self.client.get(path, parameters or None))

    def send(self, path: str, fields: Mapping[str, Any], **headers: str) -> Seen:
        """Send a form, as it would be sent by a page of the same site."""
        kind = "application/x-www-form-urlencoded"
        return self._seen(self.client.post(path, urlencode(dict(fields), doseq=True), kind, **headers))

    def act(self, path: str, **typed: str) -> Seen:
        """Open the form of an address, type into it, and send it to where it goes."""
        seen = self.open(path)
        assert 200 == seen.status, seen.text
        target = next((given["action"] for tag, given in seen.tags if tag == "form" and _is_ours(given)), None)
        return self.send(target or path, {**seen.fields, **typed})

    def tick(self, path: str, action: str, *keys: str, **more: str) -> Seen:
        """Tick rows of a list, and choose what is to be done with them."""
        token = self.open(path).fields["csrfmiddlewaretoken"]
        return self.send(path, {"csrfmiddlewaretoken": token, "action": action, "_selected_action": keys, **more})

    @staticmethod
    def _seen(answer: Any) -> Seen:
        html = b"".join(answer.streaming_content) if answer.streaming else answer.content
        found = seen(answer.status_code, answer.headers, html.decode())
        for other in ("_addanother", "_continue"):  # a browser sends the button that was pressed
            found.fields.pop(other, None)
        return found


def _is_ours(form: Mapping[str, Any]) -> bool:
    return form.get("method") == "post" and "@act" in (form.get("action") or "")


def person(name: str, *permissions: str, superuser: bool = False) -> Visitor:
    """Return a member of the staff with these permissions."""
    from django.contrib.auth.models import Permission, User

    user = User.objects.create_user(name, is_staff=True, is_superuser=superuser)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions, content_type__app_label="pgbeat"))
    return Visitor(user)
