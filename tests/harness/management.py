"""RabbitMQ's HTTP interface, as far as the tests need it: virtual hosts, rights and limits."""

from __future__ import annotations

import base64
import contextlib
import json
import urllib.error
import urllib.request
from urllib.parse import quote, unquote, urlsplit


class Management:
    """The HTTP interface of one broker, with the user and password of its AMQP URL."""

    def __init__(self, url: str, amqp_url: str) -> None:
        amqp = urlsplit(amqp_url)
        self._url = url.rstrip("/")
        self._amqp = amqp
        self._user = unquote(amqp.username or "guest")
        secret = f"{self._user}:{unquote(amqp.password or 'guest')}"
        self._authorization = f"Basic {base64.b64encode(secret.encode()).decode()}"

    @classmethod
    def beside(cls, amqp_url: str) -> Management:
        """Take the interface to be where it is by default: on port 15672 of the same host."""
        return cls(f"http://{urlsplit(amqp_url).hostname}:15672", amqp_url)

    def answers(self) -> bool:
        """Tell whether it is there and knows the user."""
        try:
            self._request("GET", "/api/whoami")
        except OSError:
            return False
        return True

    def create_vhost(self, name: str) -> str:
        """Create a virtual host and return its AMQP URL."""
        self._request("PUT", f"/api/vhosts/{quote(name, safe='')}")
        self.permit(name, write=".*")
        return self._amqp._replace(path=f"/{quote(name, safe='')}").geturl()

    def delete_vhost(self, name: str) -> None:
        """Delete a virtual host with all that is in it."""
        self._request("DELETE", f"/api/vhosts/{quote(name, safe='')}")

    def permit(self, vhost: str, write: str) -> None:
        """Let the user write where this pattern matches, and configure and read anything.

        A channel remembers for minutes what it was permitted, so the connections are closed.
        """
        rights = {"configure": ".*", "write": write, "read": ".*"}
        self._request("PUT", f"/api/permissions/{quote(vhost, safe='')}/{quote(self._user, safe='')}", rights)
        for connection in json.loads(self._request("GET", "/api/connections")):
            with contextlib.suppress(urllib.error.HTTPError):  # it has closed by itself
                self._request("DELETE", f"/api/connections/{quote(connection['name'], safe='')}")

    def limit(self, vhost: str, queue: str, most: int | None) -> None:
        """Have a queue reject what comes when it has so many messages; None for no limit."""
        path = f"/api/policies/{quote(vhost, safe='')}/full"
        if most is None:
            self._request("DELETE", path)
            return
        limits = {"max-length": most, "overflow": "reject-publish"}
        self._request("PUT", path, {"pattern": f"^{queue}$", "apply-to": "queues", "definition": limits})

    def _request(self, method: str, path: str, body: object = None) -> bytes:
        headers = {"Authorization": self._authorization, "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        # No proxy: the broker is beside us, and what the environment names is for the world outside.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(self._url + path, data=data, headers=headers, method=method)
        with opener.open(request, timeout=10) as answer:
            read: bytes = answer.read()
        return read
