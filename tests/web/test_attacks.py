"""Probes of those who would change something, or have somebody else change it: all are refused, and nothing changes.

| what is tried | probe |
|---|---|
| markup in each text field and in names, shown again beside the form and on the pages afterwards | 1, 2 |
| a form without a token, with a wrong one, one of another browser, of another person, of another dashboard | 3 to 7 |
| a form from another site, by Origin and by Sec-Fetch-Site; one that says nothing, without a token | 8 to 10 |
| GET and other methods at the addresses of actions; a method in a header or a field | 11 to 13 |
| a session that the attacker has chosen | 14, 15 |
| paths out of the dashboard; another host name; an address to go to afterwards | 16 to 18 |
| headers of a proxy that claim a place or a person; another site's password | 19, 20 |
| a form that is too large, of another type, malformed, with fields twice or too many | 21 |
| control characters, NUL, and line breaks in names that become an address | 22 |
| a page in a frame; a form that sends elsewhere | 23 |
| a user of the database without rights | 24 |
| somebody who may look and not change; a rule that says anything but True or a name | 25, 26 |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from urllib.parse import quote, urlencode

import pytest
from sqlalchemy.engine import make_url

from celery_pgbeat.web import dashboard
from celery_pgbeat.web.access import FORWARDED
from celery_pgbeat.web.actions import ACTIONS
from celery_pgbeat.web.form import MOST_BYTES, MOST_FIELDS
from tests.harness.situations import Situation
from tests.harness.visitor import Seen, Visitor
from tests.web.test_access import PASSWORD, basic
from tests.web.test_escaping import HOSTILE, MARKUP, harm

PAUSE = "/pause?name=nightly"
NAMES = {"name": "nightly", "id": "00000000-0000-0000-0000-000000000001"}
ADDRESSES = [f"/{name}?{action.parameter}={NAMES[action.parameter]}" for name, action in ACTIONS.items()]
LOCAL = {"Origin": "http://localhost"}


@pytest.fixture
def planned(empty_stage: Situation) -> Situation:
    """A task that everybody wants to pause."""
    empty_stage.plan()
    return empty_stage


@pytest.fixture
def anna(planned: Situation, shared_database: str) -> Iterator[Visitor]:
    """Somebody who may change things."""
    with Visitor(dashboard(shared_database, may_change=lambda _: "anna")) as made:
        yield made


@pytest.fixture
def unharmed(planned: Situation) -> Iterator[Callable[[Seen, int], None]]:
    """A check that an attempt was refused; after the test nothing may have changed."""

    def check(seen: Seen, status: int = 403) -> None:
        assert status == seen.status, seen.text
        assert "location" not in seen.headers

    yield check
    assert planned.session.task("nightly")["enabled"]
    assert 0 == planned.session.value("select count(*) from pgbeat.active_job")


def form_of(visitor: Visitor, address: str = PAUSE) -> dict[str, str]:
    return {**visitor.open(address).fields, "step": "do"}


# --- 1, 2: markup


@pytest.mark.parametrize("name", ACTIONS)
def test_1_what_was_typed_is_shown_again_as_text_alone(anna: Visitor, planned: Situation, name: str) -> None:
    action = ACTIONS[name]
    address = f"/{name}?{action.parameter}={quote(HOSTILE)}"
    token = form_of(anna)["token"]
    typed = {field.name: MARKUP for field in action.fields}

    for step in ("do", "look"):
        seen = anna.send(address, {**typed, "token": token, "zone": MARKUP, "step": step})
        assert seen.status in (200, 404, 422), seen.text
        assert [] == harm(seen)


def test_2_names_and_texts_that_are_stored_are_text_on_each_form_and_page(anna: Visitor, planned: Situation) -> None:
    name = MARKUP
    planned.task(name, group_name=name, schedule=None, kind="human", task=None)
    subject = quote(name)
    anna.act(f"/pause?name={subject}", reason=MARKUP)
    made = anna.act(f"/trigger?name={subject}").headers["location"].partition("id=")[2].partition("&")[0]
    anna.act(f"/pick-up?id={made}")
    finished = anna.act(f"/finish?id={made}", note=MARKUP)

    assert 303 == finished.status
    anna.act(f"/limit-group?name={subject}", max_active="2")
    anna.act(f"/pause-group?name={subject}", reason=MARKUP)
    forms = [f"/{each}?name={subject}" for each in ("pause", "resume", "trigger", "edit", "backfill", "limit-group")]
    pages = ["/tasks", "/groups", "/work", f"/task?name={subject}", f"/job?id={made}", f"/finish?id={made}"]
    for address in [*forms, *pages]:
        seen = anna.open(address)
        assert [] == harm(seen), address


# --- 3 to 7: tokens


def test_3_a_form_without_a_token_is_refused(anna: Visitor, unharmed: Callable[[Seen], None]) -> None:
    form = form_of(anna)
    del form["token"]

    unharmed(anna.send(PAUSE, form))


@pytest.mark.parametrize(
    "change", [lambda t: "", lambda t: t[:-1], lambda t: "0" * len(t), lambda t: t + "0", lambda t: "ä"]
)
def test_4_a_wrong_token_is_refused(
    anna: Visitor, unharmed: Callable[[Seen], None], change: Callable[[str], str]
) -> None:
    form = form_of(anna)

    unharmed(anna.send(PAUSE, {**form, "token": change(form["token"])}))


def test_5_a_token_of_another_browser_is_refused(
    anna: Visitor, unharmed: Callable[[Seen], None], shared_database: str
) -> None:
    form = form_of(anna)
    anna.client.cookies.clear()
    form_of(anna)  # the same person, in another browser

    unharmed(anna.send(PAUSE, form))


def test_6_a_token_of_another_person_is_refused_even_in_the_same_browser(
    unharmed: Callable[[Seen], None], shared_database: str
) -> None:
    visitor = Visitor(dashboard(shared_database, may_change=lambda request: request.headers["x-user"]))
    visitor.client.headers["X-User"] = "mallory"
    form = form_of(visitor)
    visitor.client.headers["X-User"] = "anna"

    unharmed(visitor.send(PAUSE, form))


def test_7_a_token_of_another_dashboard_is_refused_and_with_one_secret_it_is_the_same(
    anna: Visitor, unharmed: Callable[[Seen], None], shared_database: str
) -> None:
    one, two = (Visitor(dashboard(shared_database, may_change=lambda _: "anna")) for _ in range(2))
    form = form_of(one)
    two.client.cookies.update(one.client.cookies)

    unharmed(two.send(PAUSE, form))
    first, second = (
        Visitor(dashboard(shared_database, may_change=lambda _: "anna", secret="s" * 32)) for _ in range(2)
    )
    form = form_of(first, "/trigger?name=nightly")
    second.client.cookies.update(first.client.cookies)
    assert (
        422 == second.send("/trigger?name=nightly", {**form, "args": "no"}).status
    )  # it was read, so the token is right


# --- 8 to 10: other sites


@pytest.mark.parametrize(
    "origin",
    [
        *(
            "https://evil.example",
            "http://evil.example",
            "null",
            "http://localhost:9999",
            "http://localhost.evil.example",
        ),
        *(
            "http://evil.example/http://localhost",
            "http://localhost@evil.example",
            "file://",
            "",
            "http://[::1",
            "data:x",
        ),
    ],
)
def test_8_a_form_from_another_origin_is_refused_even_with_the_token(
    anna: Visitor, unharmed: Callable[[Seen], None], origin: str
) -> None:
    unharmed(anna.send(PAUSE, form_of(anna), {"Origin": origin}))


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", "", "same-origin, cross-site"])
def test_9_a_form_that_the_browser_knows_to_be_foreign_is_refused(
    anna: Visitor, unharmed: Callable[[Seen], None], site: str
) -> None:
    unharmed(anna.send(PAUSE, form_of(anna), {**LOCAL, "Sec-Fetch-Site": site}))


def test_10_a_form_from_an_unknown_site_is_not_shown_again(anna: Visitor, unharmed: Callable[[Seen], None]) -> None:
    seen = anna.send(PAUSE, {"token": "x", "reason": "planted", "step": "do"}, {})

    unharmed(seen)
    assert "planted" not in seen.html


# --- 11 to 13: methods


@pytest.mark.parametrize("address", ADDRESSES)
def test_11_opening_a_form_changes_nothing(
    anna: Visitor, planned: Situation, unharmed: Callable[..., None], address: str
) -> None:
    token = form_of(anna)["token"]
    seen = anna.open(f"{address}&{urlencode({'token': token, 'step': 'do', 'force': 'on', 'reason': 'x'})}")

    assert seen.status in (200, 404)
    assert "location" not in seen.headers


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND"])
def test_12_other_methods_are_refused(anna: Visitor, unharmed: Callable[..., None], method: str) -> None:
    assert 405 == anna.client.request(method, PAUSE, data=form_of(anna), headers=LOCAL).status_code


def test_13_no_header_and_no_field_turns_a_get_into_an_action(anna: Visitor, unharmed: Callable[..., None]) -> None:
    form = urlencode({**form_of(anna), "_method": "POST"})
    for header in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"):
        answer = anna.client.request("GET", f"{PAUSE}&{form}", headers={header: "POST", **LOCAL})
        assert 200 == answer.status_code


# --- 14, 15: sessions


def test_14_a_session_that_is_not_from_here_is_replaced(anna: Visitor, unharmed: Callable[..., None]) -> None:
    anna.open(PAUSE)
    (name,) = anna.client.cookies
    for planted in ("attacker", "attacker.", ".", "attacker." + "0" * 64, "é.x", "a" * 4000):
        anna.client.cookies.clear()
        answer = anna.client.get(PAUSE, headers={"Cookie": f"{name}={planted}".encode("latin-1")})
        assert 200 == answer.status_code
        assert f"{name}={planted};" not in answer.headers["set-cookie"]
        token = re.findall(r'name="token" value="(\w+)"', answer.text)[0]
        sent = {"Cookie": f"{name}={planted}".encode("latin-1"), **LOCAL}
        assert 403 == anna.client.post(PAUSE, data={"token": token, "step": "do"}, headers=sent).status_code


def test_15_the_cookie_is_for_this_site_alone_and_no_script_reads_it(anna: Visitor) -> None:
    given = anna.open(PAUSE).headers["set-cookie"].lower()

    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip() for part in given.split(";")}
    assert "max-age" not in given
    assert "set-cookie" not in anna.open(PAUSE).headers  # it has one now
    assert "set-cookie" not in anna.open("/tasks").headers


# --- 16 to 18: addresses


@pytest.mark.parametrize("path", ["/pause/../tasks", "/%2e%2e/pause", "/pause/", "//pause", "/Pause"])
def test_16_no_other_path_leads_to_an_action(anna: Visitor, unharmed: Callable[..., None], path: str) -> None:
    assert anna.send(f"{path}?name=nightly", form_of(anna)).status in (404, 405)


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "127.0.0.1.nip.io"])
def test_17_a_form_for_another_host_name_is_refused(anna: Visitor, unharmed: Callable[..., None], host: str) -> None:
    sent = {"Host": host, "Origin": f"http://{host}"}

    assert 400 == anna.client.post(PAUSE, data=form_of(anna), headers=sent).status_code


@pytest.mark.parametrize("to", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_18_no_field_says_where_to_go_afterwards(anna: Visitor, planned: Situation, to: str) -> None:
    more = dict.fromkeys(("next", "back", "return_to", "redirect", "url"), to)
    seen = anna.send(f"{PAUSE}&{urlencode(more)}", {**form_of(anna), **more, "step": "do"})

    assert "/task?name=nightly&done=paused" == seen.headers["location"]
    for address in (f"/pause?name={quote(to)}", f"/task?name=nightly&done={quote(to)}"):
        assert [] == harm(anna.open(address))
        assert to not in anna.open(f"/task?name=nightly&done={quote(to)}").html


# --- 19, 20: who it is


@pytest.mark.parametrize("header", FORWARDED)
def test_19_what_a_proxy_passes_on_is_not_from_this_host(
    anna: Visitor, unharmed: Callable[..., None], header: str
) -> None:
    sent = {**LOCAL, header: "127.0.0.1"}

    assert 403 == anna.client.post(PAUSE, data=form_of(anna), headers=sent).status_code


def test_20_no_header_makes_a_person_or_replaces_the_password(
    planned: Situation, unharmed: Callable[..., None], shared_database: str
) -> None:
    app = dashboard(shared_database, password=PASSWORD, may_change=lambda request: request.scope.get("user", False))
    visitor = Visitor(app, "shop.example", "192.0.2.7")
    claims = {
        **dict.fromkeys(("Remote-User", "X-Remote-User", "X-Forwarded-User", "X-Forwarded-Email", "From"), "anna"),
        "X-Original-URL": "/",
        "X-Rewrite-URL": "/",
        "Origin": "http://shop.example",
    }

    for given, status in ((claims, 401), ({**claims, **basic("wrong")}, 401), ({**claims, **basic(PASSWORD)}, 403)):
        assert status == visitor.client.get(PAUSE, headers=given).status_code
        assert status == visitor.client.post(PAUSE, data={"step": "do"}, headers=given).status_code


# --- 21, 22: what is sent

FORM = {"Content-Type": "application/x-www-form-urlencoded", **LOCAL}


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"reason=" + b"x" * MOST_BYTES, FORM, 413),
        (b"&".join(b"f%d=1" % number for number in range(MOST_FIELDS + 1)), FORM, 400),
        (b"reason=%ff%fe", FORM, 400),
        (b"reason=\xff", FORM, 400),
        (b"token=a&token=b", FORM, 400),
        (b'{"step": "do"}', {**LOCAL, "Content-Type": "application/json"}, 415),
        (b"step=do", {**LOCAL, "Content-Type": "text/plain"}, 415),
        (b"step=do", LOCAL, 415),
        (b"--x\r\n", {**LOCAL, "Content-Type": "multipart/form-data; boundary=x"}, 415),
        (b"", FORM, 403),
        (b"&&&==&%", FORM, 403),
    ],
)
def test_21_a_malformed_form_is_refused(
    anna: Visitor, unharmed: Callable[..., None], body: bytes, headers: dict[str, str], status: int
) -> None:
    form_of(anna)

    assert status == anna.client.post(PAUSE, content=body, headers=headers).status_code


def test_22_control_characters_are_data_and_never_part_of_a_header_or_of_the_page(
    anna: Visitor, planned: Situation
) -> None:
    name = "a\r\nSet-Cookie: planted=1\r\n\r\nb\x1b[31m\u202e"
    planned.session.rows("set session_replication_role = replica")  # past the triggers, as from a restored dump
    planned.task(name, schedule=None)
    planned.session.rows("set session_replication_role = default")
    form = form_of(anna)

    seen = anna.send(f"/pause?name={quote(name)}", {**form, "reason": "x\x1b[31m\u202ey"})

    assert 303 == seen.status
    assert "planted" not in str(seen.headers.get("set-cookie"))
    assert seen.headers["location"].isprintable()
    assert "x\x1b[31m\u202ey" == planned.session.task(name)["pause_reason"]
    assert [] == harm(anna.open(seen.headers["location"]))
    assert 422 == anna.send(PAUSE, {**form, "reason": "a\0b"}).status


# --- 23: what a browser may do with a form


@pytest.mark.parametrize("address", ADDRESSES)
def test_23_a_form_is_neither_framed_nor_kept_nor_sent_elsewhere(
    anna: Visitor, planned: Situation, address: str
) -> None:
    seen = anna.open(address)
    policy = dict(part.split(" ", 1) for part in seen.headers["content-security-policy"].split("; "))

    assert ("'none'", "'self'") == (policy["frame-ancestors"], policy["form-action"])
    assert "unsafe" not in seen.headers["content-security-policy"]
    assert ("DENY", "no-store") == (seen.headers["x-frame-options"], seen.headers["cache-control"])
    assert "same-origin" == seen.headers["referrer-policy"]  # with no-referrer, browsers hide where a form comes from
    assert [] == harm(seen)


# --- 24 to 26: rights


def test_24_an_action_without_the_database_right_is_refused_with_the_reason(well: Situation, reader_url: str) -> None:
    well.plan()
    well.session.rows("insert into pgbeat.task_group (name) values ('reports')")
    visitor = Visitor(dashboard(reader_url, may_change=lambda _: "anna"))

    for address in (PAUSE, "/trigger?name=nightly", "/limit-group?name=reports"):
        seen = visitor.act(address, reason="stocktaking", max_active="2")
        assert 403 == seen.status, (address, seen.text)
        assert "The dashboard's database user may not do this." in seen.text
        assert str(make_url(reader_url).username) not in seen.html
    assert well.session.task("nightly")["enabled"]
    assert 0 == well.session.value("select count(*) from pgbeat.active_job")


@pytest.mark.parametrize("address", [*ADDRESSES, "/check-schedule?name=nightly&schedule=@daily"])
def test_25_a_user_with_read_access_gets_no_form_and_can_send_none(
    planned: Situation, unharmed: Callable[..., None], shared_database: str, anna: Visitor, address: str
) -> None:
    form = form_of(anna)
    for looker in (
        Visitor(dashboard(shared_database)),
        Visitor(dashboard(shared_database, may_change=lambda _: False)),
    ):
        looker.client.cookies.update(anna.client.cookies)
        seen = looker.open(address)
        assert 403 == seen.status
        assert "set-cookie" not in seen.headers
        assert looker.send(address, form).status in (403, 405)


@pytest.mark.parametrize("answer", [None, 1, 0, "", "  ", b"anna", ["anna"], object()])
def test_26_only_true_and_a_name_give_the_right_to_change(
    planned: Situation, unharmed: Callable[..., None], shared_database: str, answer: object
) -> None:
    visitor = Visitor(dashboard(shared_database, may_change=lambda _: answer))  # type: ignore[arg-type,return-value]

    assert 403 == visitor.open(PAUSE).status
    assert 403 == visitor.send(PAUSE, {"step": "do"}).status


def test_a_user_with_the_right_can_act(anna: Visitor, planned: Situation) -> None:
    """The control of all the probes above: the same form, sent as it should be."""
    sent = {**LOCAL, "Sec-Fetch-Site": "same-origin"}

    assert 303 == anna.send(PAUSE, form_of(anna), sent).status
    assert not planned.session.task("nightly")["enabled"]
    assert 303 == anna.send("/resume?name=nightly", form_of(anna, "/resume?name=nightly"), {}).status
