"""Who may open the dashboard, and what its answers let a browser do: probes, each refused."""

from __future__ import annotations

import base64
import subprocess
import sys

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.websockets import WebSocketDisconnect

from celery_pgbeat.errors import InvalidSetting
from celery_pgbeat.settings import Settings
from celery_pgbeat.web import dashboard
from celery_pgbeat.web.access import FORWARDED
from tests.harness.situations import Situation
from tests.harness.visitor import Visitor

PAGES = ("/", "/tasks", "/task?name=x", "/jobs", "/job?id=x", "/groups", "/work", "/nodes", "/problems", "/timeline")
PATHS = (*PAGES, "/events", "/static/pgbeat.css", "/static/..%2f..%2f__init__.py", "/nowhere")
AWAY = "postgresql://127.0.0.1:1/x"  # who is refused never gets as far as the database
PASSWORD = "correct horse"


def basic(password: str, user: str = "anna") -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


# --- without a password: this host alone


@pytest.mark.parametrize("path", PATHS)
def test_another_host_is_refused_and_told_what_to_set(path: str) -> None:
    seen = Visitor(dashboard(AWAY), address="192.0.2.7").open(path)

    assert 403 == seen.status
    assert "Only this host itself may open the dashboard. Set pgbeat_web_password" in seen.text
    assert "authorize" in seen.text


@pytest.mark.parametrize("header", FORWARDED)
def test_what_a_proxy_passes_on_comes_from_somewhere_else(header: str) -> None:
    answer = Visitor(dashboard(AWAY)).client.get("/tasks", headers={header: "127.0.0.1"})

    assert 403 == answer.status_code


@pytest.mark.parametrize(("version", "expected"), [("1.0", 403), ("1.1", 200), ("2", 200)])
def test_what_comes_by_the_protocol_of_proxies_comes_from_somewhere_else(version: str, expected: int) -> None:
    app = dashboard(AWAY)

    async def by_version(scope, receive, send):  # type: ignore[no-untyped-def]
        await app({**scope, "http_version": version}, receive, send)

    assert expected == Visitor(by_version).open("/static/pgbeat.css").status


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "", "[::1", "@localhost"]
)
@pytest.mark.parametrize("path", PATHS)
def test_a_host_name_of_others_that_points_here_is_refused(host: str, path: str) -> None:
    answer = Visitor(dashboard(AWAY)).client.get(path, headers={"Host": host})

    assert 400 == answer.status_code


@pytest.mark.parametrize("host", ["localhost", "localhost:8480", "127.0.0.1:8480", "[::1]:8480", "LOCALHOST"])
def test_this_host_is_known_by_all_its_names(host: str) -> None:
    answer = Visitor(dashboard(AWAY)).client.get("/static/pgbeat.css", headers={"Host": host})

    assert 200 == answer.status_code


def test_a_socket_without_an_address_is_not_taken_for_this_host() -> None:
    app = dashboard(AWAY)

    async def without_client(scope, receive, send):  # type: ignore[no-untyped-def]
        await app({**scope, "client": None}, receive, send)

    assert 403 == Visitor(without_client).open("/tasks").status


# --- with a password


@pytest.mark.parametrize("path", PATHS)
def test_without_the_password_nothing_is_shown(path: str) -> None:
    seen = Visitor(dashboard(AWAY, password=PASSWORD), "shop.example", "192.0.2.7").open(path)

    assert 401 == seen.status
    assert 'Basic realm="celery-pgbeat", charset="UTF-8"' == seen.headers["www-authenticate"]


@pytest.mark.parametrize(
    "given",
    [
        basic("wrong"),
        basic(""),
        basic(PASSWORD.upper()),
        basic(PASSWORD + " "),
        {"Authorization": f"Bearer {PASSWORD}"},
        {"Authorization": f"Basic {PASSWORD}"},
        {"Authorization": "Basic "},
        {"Authorization": "Basic /w=="},
        {"Authorization": "Basic " + "A" * 4000},
        {"Cookie": f"password={PASSWORD}"},
    ],
)
def test_anything_but_the_password_is_refused(given: dict[str, str]) -> None:
    answer = Visitor(dashboard(AWAY, password=PASSWORD)).client.get("/static/pgbeat.css", headers=given)

    assert 401 == answer.status_code


def test_with_the_password_every_host_name_of_the_server_is_served() -> None:
    visitor = Visitor(dashboard(AWAY, password="schöne Grüße"), "shop.example", "192.0.2.7")

    assert 200 == visitor.client.get("/static/pgbeat.css", headers=basic("schöne Grüße")).status_code


def test_the_setting_is_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGBEAT_WEB_PASSWORD", PASSWORD)
    visitor = Visitor(dashboard(AWAY), "shop.example", "192.0.2.7")

    assert 401 == visitor.open("/static/pgbeat.css").status
    assert 200 == visitor.client.get("/static/pgbeat.css", headers=basic(PASSWORD)).status_code


def test_a_short_password_is_refused_and_none_is_ever_shown() -> None:
    with pytest.raises(InvalidSetting, match="pgbeat_web_password has 4 characters") as refused:
        Settings.from_mapping({"pgbeat_web_password": "hush"})

    assert "hush" not in str(refused.value)
    assert PASSWORD not in repr(Settings.from_mapping({"pgbeat_web_password": PASSWORD}))


# --- with a function


@pytest.mark.parametrize("answer", [False, None, 1, "yes"])
@pytest.mark.parametrize("path", PATHS)
def test_only_true_admits_a_request(answer: object, path: str) -> None:
    app = dashboard(AWAY, authorize=lambda _: answer)  # type: ignore[arg-type,return-value]

    assert 403 == Visitor(app).open(path).status


def test_the_function_may_be_asynchronous_and_sees_the_request() -> None:
    async def authorize(request) -> bool:  # type: ignore[no-untyped-def]
        return bool(request.headers.get("x-user") == "anna")

    client = Visitor(dashboard(AWAY, authorize=authorize), "shop.example", "192.0.2.7").client

    assert 403 == client.get("/static/pgbeat.css").status_code
    assert 200 == client.get("/static/pgbeat.css", headers={"X-User": "anna"}).status_code


def test_with_both_the_password_and_the_function_must_agree() -> None:
    for allowed, expected in ((True, 200), (False, 403)):
        app = dashboard(AWAY, password=PASSWORD, authorize=lambda _, allowed=allowed: allowed)  # type: ignore[misc]
        assert 401 == Visitor(app).open("/static/pgbeat.css").status
        assert expected == Visitor(app).client.get("/static/pgbeat.css", headers=basic(PASSWORD)).status_code


def test_only_the_names_that_are_given_are_answered() -> None:
    app = dashboard(AWAY, authorize=lambda _: True, hosts=["*.shop.example"])

    assert 200 == Visitor(app, "beat.shop.example").open("/static/pgbeat.css").status
    assert 400 == Visitor(app, "evil.example").open("/static/pgbeat.css").status


@pytest.mark.parametrize(
    "wrong",
    [
        *({"password": ""}, {"password": 5}, {"authorize": True}, {"hosts": "shop.example"}, {"may_change": "anna"}),
        *({"secret": "short"}, {"secret": b"x" * 32}),
    ],
)
def test_a_wrong_argument_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=next(iter(wrong))):
        dashboard(AWAY, **wrong)  # type: ignore[arg-type]


# --- what a browser may do with the answers


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_has_the_headers_that_keep_a_browser_from_harm(path: str, shared_database: str) -> None:
    refused = Visitor(dashboard(AWAY), address="192.0.2.7").open(path)
    answers = [refused] if path == "/events" else [refused, Visitor(dashboard(shared_database)).open(path)]

    for seen in answers:
        policy = dict(part.split(" ", 1) for part in seen.headers["content-security-policy"].split("; "))
        assert "'none'" == policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"]
        assert "'self'" == policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["form-action"]
        assert "unsafe" not in seen.headers["content-security-policy"]
        assert "nosniff" == seen.headers["x-content-type-options"]
        assert "DENY" == seen.headers["x-frame-options"]
        assert "same-origin" == seen.headers["referrer-policy"]
        assert "set-cookie" not in seen.headers
        assert "access-control-allow-origin" not in seen.headers


@pytest.mark.parametrize("path", PAGES)
def test_no_page_asks_another_host_or_has_script_or_style_of_its_own(
    well: Situation, visitor: Visitor, path: str
) -> None:
    well.plan()

    seen = visitor.open(path)

    assert [] == [link for link in seen.links if not link.startswith(("/", "#"))]
    assert [] == [link for link in seen.links if link.startswith("//")]
    for tag, given in seen.tags:
        assert tag != "style"
        assert tag != "script" or given.get("src")
        assert not [name for name in given if name == "style" or name.startswith("on")], (tag, given)


def test_pages_are_not_kept_and_files_are() -> None:
    visitor = Visitor(dashboard(AWAY))

    assert "no-store" == visitor.open("/tasks").headers["cache-control"]
    assert "immutable" in visitor.open("/static/pgbeat.js").headers["cache-control"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", PAGES)
def test_nothing_can_be_changed(method: str, path: str) -> None:
    answer = Visitor(dashboard(AWAY)).client.request(method, path, headers={"X-HTTP-Method-Override": "GET"})

    assert 405 == answer.status_code


@pytest.mark.parametrize(
    "path", ["/static/../application.py", "/static/%2e%2e/page.py", "/static//etc/passwd", "/tasks/"]
)
def test_no_path_leads_out_of_the_pages(path: str) -> None:
    assert 404 == Visitor(dashboard(AWAY)).open(path).status


def test_a_websocket_is_refused() -> None:
    client = Visitor(dashboard(AWAY)).client

    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/events"):
        pass


def test_the_connections_of_the_dashboard_cannot_write(well: Situation, migrated_database: str) -> None:
    from celery_pgbeat.api import PgBeat
    from celery_pgbeat.web.reading import Reader

    well.plan()
    reader = Reader(PgBeat(migrated_database))

    with pytest.raises(Exception, match="read-only transaction"):
        reader.pause("nightly")
    with pytest.raises(Exception, match="read-only transaction"), reader.database.reading():
        reader.unschedule("nightly")
    reader.close()


# --- the package


def test_nothing_but_the_dashboard_imports_what_it_needs() -> None:
    code = (
        "import sys, celery_pgbeat, celery_pgbeat.api, celery_pgbeat.cli, celery_pgbeat.beat.scheduler, "
        "celery_pgbeat.worker\n"
        "print([name for name in ('starlette', 'jinja2', 'uvicorn', 'anyio') if name in sys.modules])"
    )

    assert "[]\n" == subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_without_the_extra_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['starlette'] = None\nimport celery_pgbeat.web"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "MissingExtra: The dashboard needs starlette, which is not installed: pip install 'celery-pgbeat[web]'" in (
        done.stderr
    )


def test_mounted_below_a_path_all_links_stay_below_it(well: Situation, migrated_database: str) -> None:
    well.plan()
    app = Starlette(routes=[Mount("/ops/beat", app=dashboard(migrated_database))])

    for path in PAGES:
        seen = Visitor(app).open(f"/ops/beat{path}")
        assert [] == [link for link in seen.links if not link.startswith(("/ops/beat/", "#"))]
        assert "" == seen.text or 404 == seen.status or 200 == seen.status
    assert "/ops/beat/events" in [given.get("data-events") for _, given in Visitor(app).open("/ops/beat/").tags]
