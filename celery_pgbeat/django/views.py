"""The dashboard behind Django's login: who may look and act is decided by Django's permissions.

Forms are protected by the dashboard itself: each carries a token of the browser and of Django's user, and must come
from this site. So Django's own token, which its pages do not have, is not asked for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseBase
from django.urls import NoReverseMatch, reverse
from django.utils.crypto import salted_hmac
from django.views.decorators.csrf import csrf_exempt

from celery_pgbeat.django import bridge
from celery_pgbeat.django.joined import AliasBeat
from celery_pgbeat.django.rights import LOOK, NEEDED, name_of, rights_of
from celery_pgbeat.web import Dashboard, dashboard

KEY = "celery_pgbeat.django"  # of the scope: what the view knows of the person


@dataclass(frozen=True, slots=True)
class Visitor:
    """A user of Django, as the dashboard needs to know."""

    name: str
    rights: frozenset[str] = field(default_factory=frozenset)

    def may_change(self, page: str) -> bool | str:
        """Return the name, if this page is allowed; on a page that only shows, if any action is."""
        needed = NEEDED.get(page)
        return self.name if (needed in self.rights if needed else self.rights) else False


@csrf_exempt
def page(request: Any, page: str = "") -> HttpResponseBase:
    """Show a page of the dashboard to a user who may look at periodic tasks."""
    user = request.user
    if not (user.is_authenticated and user.is_active):
        return redirect_to_login(request.get_full_path(), _login_url())
    if not user.has_perm(LOOK):
        raise PermissionDenied
    scope = {
        "path": request.path,
        "raw_path": request.path.encode(),
        "root_path": request.path[: len(request.path) - len(page)].rstrip("/"),
        KEY: Visitor(name_of(user), rights_of(user)),
    }
    return bridge.answer(_dashboard(os.getpid()), request, scope)


def _login_url() -> str:
    """Return the admin's login if there is one and the project names no other, because Django's default has no page."""
    if apps.is_installed("django.contrib.admin") and settings.LOGIN_URL == "/accounts/login/":
        try:
            return str(reverse("admin:login"))
        except NoReverseMatch:
            pass
    return str(settings.LOGIN_URL)


@cache
def _dashboard(_process: int) -> Dashboard:
    """Return the dashboard of this process. Its forms are good in every process that has the same SECRET_KEY."""
    beat = AliasBeat()
    return dashboard(
        beat,
        authorize=lambda request: isinstance(request.scope.get(KEY), Visitor),
        may_change=_who,
        secret=salted_hmac(KEY, "dashboard", algorithm="sha256").hexdigest(),
        title=beat.title,
    )


def _who(request: Any) -> bool | str:
    visitor: Visitor = request.scope[KEY]
    return visitor.may_change(request.url.path.rpartition("/")[2])
