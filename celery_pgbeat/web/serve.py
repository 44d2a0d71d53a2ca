"""Serve the dashboard by uvicorn, for the command `web`."""

from __future__ import annotations

import socket
from types import FrameType

from starlette.types import ASGIApp, Receive, Scope, Send

from celery_pgbeat.errors import MissingExtra
from celery_pgbeat.web.application import Dashboard

LINGERS = 3  # seconds for which open pages may delay the end


def serve(app: Dashboard, listener: socket.socket, prefix: str) -> None:
    """Answer requests until the process is asked to end.

    A proxy's word on where a request comes from is not believed: the rule who may look depends on it.

    Raises:
        MissingExtra: uvicorn is not installed.
    """
    try:
        import uvicorn

        from celery_pgbeat.web.connection import BACKLOG, Connection
    except ModuleNotFoundError:
        raise MissingExtra("The command web needs uvicorn: pip install 'celery-pgbeat[web]'") from None
    configuration = uvicorn.Config(
        Prefixed(app, prefix) if prefix else app,
        http=Connection,
        backlog=BACKLOG,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=LINGERS,
    )

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            app.end_streams()
            super().handle_exit(sig, frame)

    Server(configuration).run(sockets=[listener])


class Prefixed:
    """An application that a proxy shows below a path, whether the proxy passes that path on or cuts it off."""

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as if the server had been told the path."""
        path = scope["path"]
        if path != self._prefix and not path.startswith(f"{self._prefix}/"):
            path = f"{self._prefix}{path}"
        await self._app({**scope, "root_path": self._prefix, "path": path}, receive, send)
