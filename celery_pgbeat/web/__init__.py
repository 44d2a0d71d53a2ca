"""The dashboard: pages in a browser that show what runs, what is late and why.

    from celery_pgbeat.web import dashboard

    app = dashboard("postgresql://localhost/shop")

It only reads, unless `may_change` says who may change something.
It is an ASGI application for any server, and may be mounted in another one. It needs the extra `web`. Nothing else in
the package imports it, but the command `web`.
"""

from __future__ import annotations

try:
    from celery_pgbeat.web.application import Dashboard, dashboard
except ModuleNotFoundError as error:
    package = str(error.name).partition(".")[0]
    if package not in ("starlette", "jinja2", "anyio", "markupsafe"):
        raise
    from celery_pgbeat.errors import MissingExtra

    raise MissingExtra(
        f"The dashboard needs {package}, which is not installed: pip install 'celery-pgbeat[web]'"
    ) from None

__all__ = ["Dashboard", "dashboard"]
