"""`web`: serve the dashboard, for this host or with a password."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import click

from celery_pgbeat.cli.command_line.failure import ApiCommand, Failure, WrongSettings
from celery_pgbeat.cli.command_line.target import Target

if TYPE_CHECKING:
    from celery_pgbeat.api import PgBeat

PORT = 8480


@click.command(cls=ApiCommand)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address at which it listens.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=PORT,
    show_default=True,
    help="The port at which it listens; 0 for any that is free.",
)
@click.option(
    "--prefix", default="", metavar="PATH", help="The path at which a proxy shows it, such as /pgbeat.  [default: /]"
)
@click.option(
    "--host-name",
    "host_names",
    multiple=True,
    metavar="NAME",
    help="Answer only to this name of the server; may be given several times, and may contain *.",
)
@click.option(
    "--allow-changes", is_flag=True, help="Let all who may open it also change things: pause, trigger, edit, decide."
)
def web(host: str, port: int, prefix: str, host_names: tuple[str, ...], allow_changes: bool) -> None:
    """Serve the dashboard until Ctrl-C: pages in a browser that show what runs, what is late and why.

    It only reads, unless you give --allow-changes. Without pgbeat_web_password (PGBEAT_WEB_PASSWORD in the environment)
    only this host may open it, and no other address is taken. Then --allow-changes lets every user of this host act,
    and each who reaches it by a proxy or a tunnel that adds no header. With a password, a browser asks for it; any user
    name will do. Put a proxy that speaks HTTPS before an address that others reach. It needs the extra `web`.

    Exit codes: 0 ended; 1 the port is taken; 2 wrong usage or settings.
    """
    from celery_pgbeat.errors import InvalidSetting
    from celery_pgbeat.web import dashboard
    from celery_pgbeat.web.access import is_loopback
    from celery_pgbeat.web.serve import serve

    target = Target.current()
    beat = target.beat()
    if prefix and not prefix.startswith("/"):
        raise InvalidSetting(f"--prefix is {prefix!r}, which does not begin with a slash")
    if not is_loopback(host) and beat.settings.web_password is None:
        raise WrongSettings(
            f"--host {host} lets others in, and there is no password: set pgbeat_web_password (PGBEAT_WEB_PASSWORD in "
            "the environment), or mount dashboard(..., authorize=...) in an application of your own"
        )
    _ = beat.settings.required_url
    may_change = (lambda _: True) if allow_changes else None
    app = dashboard(beat, hosts=host_names or None, may_change=may_change, title=_title(beat))
    with listening(host, port) as listener:
        shown = f"[{host}]" if ":" in host else host
        click.echo(f"The dashboard is at http://{shown}:{listener.getsockname()[1]}{prefix.rstrip('/')}/ (Ctrl-C ends)")
        serve(app, listener, prefix.rstrip("/"))


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 is any free one."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise Failure(f"Port {port} of {host} cannot be taken: {error.strerror or error}") from None
    # asyncio sets this only for sockets that say their protocol. Without it the kernel keeps the second write of an
    # answer back until the browser has acknowledged the first, 40 ms later.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _title(beat: PgBeat) -> str:
    app = Target.current().app
    return getattr(app, "main", None) or beat.settings.schema
