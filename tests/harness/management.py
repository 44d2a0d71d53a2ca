"""RabbitMQ's HTTP interface, as far as the tests need it: virtual hosts, and how full a queue may be."""

from __future__ import annotations

import base64
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
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        self._request("PUT", f"/api/permissions/{quote(name, safe='')}/{quote(self._user, safe='')}", everything)
        return self._amqp._replace(path=f"/{quote(name, safe='')}").geturl()

    def delete_vhost(self, name: str) -> None:
        """Delete a virtual host with all that is in it."""
        self._request("DELETE", f"/api/vhosts/{quote(name, safe='')}")

    def limit(self, queue: str, most: int | None) -> None:
        """Have a queue of the default virtual host reject what comes when it has so many messages; None: no limit."""
        path = "/api/policies/%2F/full"
        if most is None:
            self._request("DELETE", path)
            return
        rejects = {"overflow": "reject-publish"}
        # In this order: RabbitMQ reads the length first, and would drop what a queue has too many of.
        for limits in (rejects, {**rejects, "max-length": most}):
            self._request("PUT", path, {"pattern": f"^{queue}$", "apply-to": "queues", "definition": limits})

    def create_user(self, name: str, secret: str, vhost: str, **rights: str) -> str:
        """Create a user with rights (configure, write, read) in one virtual host, and return its AMQP URL."""
        self._request("PUT", f"/api/users/{quote(name, safe='')}", {"password": secret, "tags": ""})
        self._request("PUT", f"/api/permissions/{quote(vhost, safe='')}/{quote(name, safe='')}", rights)
        netloc = f"{quote(name)}:{quote(secret)}@{self._amqp.hostname}:{self._amqp.port}"
        return self._amqp._replace(netloc=netloc, path=f"/{quote(vhost, safe='')}").geturl()

    def delete_user(self, name: str) -> None:
        """Delete a user."""
        self._request("DELETE", f"/api/users/{quote(name, safe='')}")

    def _request(self, method: str, path: str, body: object = None) -> None:
        headers = {"Authorization": self._authorization, "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        # No proxy: the broker is beside us, and what the environment names is for the world outside.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(self._url + path, data=data, headers=headers, method=method)
        with opener.open(request, timeout=10):
            pass
