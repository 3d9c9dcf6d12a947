"""What one format alone can carry is refused at every face, and nothing stored breaks a reader."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import httpx
import msgspec
import pytest
import zmq
from tests.acceptance.site import PATIENCE, Daemon, Site, new_site

import remit_client
from remit_client.keys import load_key
from remit_client.values import DEEPEST

HUGE = 2**64
LOW = -(2**63) - 1
DEEP = f"{'[' * (DEEPEST + 1)}{']' * (DEEPEST + 1)}"
IN_JSON = [
    pytest.param(f"{HUGE}", "$.value", id="a-number-too-high"),
    pytest.param(f"{LOW}", "$.value", id="a-number-too-low"),
    pytest.param(f'{{"a b": [0, {HUGE}]}}', '$.value["a b"][1]', id="far-inside"),
    pytest.param(DEEP, "$.value" + "[0]" * (DEEPEST - 1), id="too-deep"),
    pytest.param("1e400", "$", id="no-finite-number"),
    pytest.param("9" * 5_000, "$", id="a-number-that-nobody-reads"),
]
IN_MSGPACK = [
    pytest.param(msgspec.msgpack.Ext(5, b"x"), "$.value", id="an-extension"),
    pytest.param(datetime(2026, 1, 1, tzinfo=UTC), "$.value", id="a-timestamp"),
    pytest.param([{"a": b"x"}], "$.value[0].a", id="bytes"),
    pytest.param({"a": {1: 2}}, "$.value.a", id="a-key-that-is-no-text"),
    pytest.param(float("nan"), "$.value", id="not-a-number"),
    pytest.param([float("-inf")], "$.value[0]", id="infinite"),
]


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with new_site() as site:
        site.configure(http="127.0.0.1:0")
        with site.serving() as daemon:
            yield daemon


@pytest.fixture(autouse=True)
def everything_is_readable(daemon: Daemon) -> Iterator[None]:
    """After each test: whatever it sent, nobody is kept from reading."""
    yield
    with daemon.operator() as operator:
        for event in ("audit:query", "state:list", "review:list"):
            assert operator.call(event)["items"] is not None
        assert operator.call("state:list")["total"] == 0


def exchange(daemon: Daemon, version: bytes, body: bytes) -> dict[str, Any]:
    """Send one request as the operator, and read its answer."""
    key = load_key(daemon.home / "operator.key")
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.curve_serverkey = (daemon.home / "server.pub").read_bytes().strip()
        socket.curve_publickey = key.public_key.encode()
        socket.curve_secretkey = key.secret_key.encode()
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, int(PATIENCE * 1000))
        socket.connect(daemon.endpoint)
        socket.send_multipart([version, b"Q", body])
        found = socket.recv_multipart()[2]
    decode = msgspec.json.decode if version == b"J1" else msgspec.msgpack.decode
    return dict(decode(found))


def refused(answer: dict[str, Any], path: str) -> bool:
    """Tell whether data were refused at a place; where none can be told, at any inside of them."""
    error = answer["error"]
    told = error["details"]["path"]
    return error["code"] == "invalid_data" and (path in (told, "$"))


@pytest.mark.parametrize(("text", "path"), IN_JSON)
def test_json_of_the_socket(daemon: Daemon, text: str, path: str) -> None:
    body = f'{{"id": 1, "event": "state:set", "data": {{"key": "a", "value": {text}}}}}'
    assert refused(exchange(daemon, b"J1", body.encode()), path)


@pytest.mark.parametrize(("value", "path"), IN_MSGPACK)
def test_msgpack_of_the_socket(daemon: Daemon, value: Any, path: str) -> None:
    request = {"id": 1, "event": "state:set", "data": {"key": "a", "value": value}}
    assert refused(exchange(daemon, b"R1", msgspec.msgpack.encode(request)), path)


@pytest.mark.parametrize(
    ("event", "data"),
    [
        ("agent:send_message", {"agent_id": "a", "message": msgspec.msgpack.Ext(1, b"")}),
        ("audit:query", {"since": float("nan")}),
        ("math:add", {"a": float("inf"), "b": 1}),
        ("agent:spawn", {"profile": "x", "capabilities": [{"ref": "a", "config": {"a": b"x"}}]}),
    ],
)
def test_any_event(daemon: Daemon, event: str, data: Any) -> None:
    body = msgspec.msgpack.encode({"id": 1, "event": event, "data": data})
    assert refused(exchange(daemon, b"R1", body), "$")


@pytest.mark.parametrize(
    ("version", "body"),
    [
        pytest.param(b"J1", b'{"id": 1, "event": "state:set", "data": "\\ud800"}', id="surrogate"),
        pytest.param(b"J1", b"[" * 100_000, id="a-frame-too-deep"),
        pytest.param(b"R1", b"\x91" * 100_000, id="a-packed-frame-too-deep"),
        pytest.param(
            b"R1", msgspec.msgpack.encode({"id": "i" * 1000, "event": "a:b"}), id="a-long-id"
        ),
        pytest.param(
            b"R1", msgspec.msgpack.encode({"id": 1, "event": "a:" + "b" * 5000}), id="a-long-name"
        ),
        pytest.param(
            b"R1",
            msgspec.msgpack.encode({"id": 1, "event": "a:b", "session": "s" * 5000}),
            id="a-long-session",
        ),
    ],
)
def test_a_frame_that_cannot_be_read(daemon: Daemon, version: bytes, body: bytes) -> None:
    assert exchange(daemon, version, body)["error"]["code"] == "bad_frame"


@pytest.mark.parametrize(("text", "path"), IN_JSON)
def test_http(daemon: Daemon, text: str, path: str) -> None:
    with daemon.operator() as operator:
        token = operator.call("key:token")["token"]
    answer = httpx.post(
        f"{daemon.ready['endpoints']['http']}/v1/events/state:set",
        content=f'{{"key": "a", "value": {text}}}',
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    problem = answer.json()
    assert answer.status_code in (400, 422)
    if problem["code"] != "bad_frame":  # no JSON that anybody here reads
        assert (problem["code"], problem["details"]["path"]) == ("invalid_data", path)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["key=a", f"value={HUGE}"], id="a-pair"),
        pytest.param(["--data", f'{{"key": "a", "value": {HUGE}}}'], id="the-whole-request"),
    ],
)
def test_the_command_line(daemon: Daemon, arguments: list[str]) -> None:
    done = daemon.site.run("call", "state:set", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("error: $.value: this whole number has more than 64 bits")


def test_the_client_says_where(daemon: Daemon) -> None:
    with daemon.operator() as operator, pytest.raises(remit_client.InvalidData) as caught:
        operator.call("state:set", {"key": "a", "value": [1, {"b": HUGE}]})
    assert caught.value.details == {"path": "$.value[1].b"}


# ---- what is stored already ----

ROWS = [
    pytest.param(str(HUGE).encode(), str(HUGE), id="a-number-too-high"),
    pytest.param(f'{{"a": [{LOW}]}}'.encode(), {"a": [str(LOW)]}, id="far-inside"),
    pytest.param(b'{"a": ', None, id="half-a-text"),
    pytest.param(b'"\xff\xfe"', None, id="no-text"),
    pytest.param(b"[" * 5_000 + b"]" * 5_000, None, id="far-too-deep"),
    pytest.param(b"", None, id="nothing"),
]

BAD = b"b\xffd"
AUDIT = """
INSERT INTO audit
VALUES (?, 1.0, 'x', 'a:b', 'denied', CAST(? AS TEXT), 'd', 1, '', ?, 'p', 'h')
"""
MAIL = """
INSERT INTO mail (recipient, sender, message, sent_at, expires_at)
VALUES ('ann', CAST(? AS TEXT), ?, 1.0, 9e12)
"""
REVIEW = """
INSERT INTO review (
    id, kind, subject, requested_by, requested_at, expires_at, payload,
    status, decided_by, decided_at, note
) VALUES (?, ?, 'state:set', CAST(? AS TEXT), 1.0, 9e12, ?, ?, '', NULL, '')
"""


def plant(site: Site, *statements: tuple[str, tuple[Any, ...]]) -> None:
    """Write straight into the database of a home that nobody serves."""
    with closing(sqlite3.connect(site.home / "remit.db")) as connection:
        for statement, values in statements:
            connection.execute(statement, values)
        connection.commit()


@pytest.fixture(scope="module")
def scarred() -> Iterator[Site]:
    """A home in which each table holds rows that nobody can read."""
    with new_site() as site:
        with site.serving() as daemon, daemon.operator() as operator:
            operator.call("agent:spawn", {"profile": "observer", "agent_id": "ann"})
            operator.call("agent:spawn", {"profile": "observer", "agent_id": "hurt"})
        for at, row in enumerate(ROWS):
            data, name = row.values[0], f"row-{at}"
            plant(
                site,
                ("INSERT INTO state VALUES (?, ?, 1, 1.0, CAST(? AS TEXT))", (name, data, BAD)),
                (AUDIT, (1000 + at, BAD, data)),
                (MAIL, (BAD, data)),
                *(
                    (REVIEW, (f"{name}-{kind}-{status}", kind, BAD, data, status))
                    for kind in ("approval", "capability", "card")
                    for status in ("pending", "approved")
                ),
                ("INSERT INTO session VALUES ('operator', ?, ?)", (name, data)),
                ("INSERT INTO made_capability VALUES (?, ?)", (name, data)),
                ("INSERT INTO lesson VALUES ('default', ?, ?)", (name, data)),
            )
        plant(
            site,
            ("INSERT INTO state VALUES ('huge', ?, 1, 1.0, 'x')", (b'"' + b"x" * 2**21 + b'"',)),
            ("INSERT INTO state VALUES ('zz', X'31', 1, 9e999, 'x')", ()),
            ("UPDATE agent SET body = X'c1' WHERE id = 'hurt'", ()),
            ("UPDATE blob SET data = X'c1'", ()),
        )
        yield site


@pytest.fixture(scope="module")
def scarred_daemon(scarred: Site) -> Iterator[Daemon]:
    with scarred.serving() as daemon:
        yield daemon


@pytest.mark.parametrize("at", range(len(ROWS)))
@pytest.mark.parametrize("version", [b"R1", b"J1"])
def test_a_stored_value_is_shown_as_far_as_it_can_be(
    scarred_daemon: Daemon, at: int, version: bytes
) -> None:
    encode = msgspec.json.encode if version == b"J1" else msgspec.msgpack.encode
    body = encode({"id": 1, "event": "state:get", "data": {"key": f"row-{at}"}})
    answer = exchange(scarred_daemon, version, body)
    assert answer["ok"], answer
    expected = ROWS[at].values[1]
    value = answer["data"]["value"]
    assert value == expected if expected is not None else {"unreadable", "bytes"} <= set(value)
    assert answer["data"]["updated_by"] == "b\\xffd"


@pytest.mark.parametrize("version", [b"R1", b"J1"])
@pytest.mark.parametrize(
    ("event", "data", "count"),
    [
        ("state:list", {}, len(ROWS) + 2),
        ("audit:query", {"event": "a:b"}, len(ROWS)),
        ("review:list", {"kind": "approval"}, len(ROWS)),
        ("review:list", {"kind": "approval", "status": "approved"}, len(ROWS)),
        ("review:list", {}, len(ROWS)),
        ("agent:list", {}, 1),
        ("session:list", {}, len(ROWS)),
        ("capability:list", {}, 1),
        ("discovery:examples", {}, 0),
    ],
)
def test_no_list_is_lost_over_one_row(
    scarred_daemon: Daemon, version: bytes, event: str, data: Any, count: int
) -> None:
    encode = msgspec.json.encode if version == b"J1" else msgspec.msgpack.encode
    seen = 0
    after: dict[str, Any] | None = {}
    while after is not None:
        request = {"id": 1, "event": event, "data": data | after}
        answer = exchange(scarred_daemon, version, encode(request))
        assert answer["ok"], answer
        seen += len(answer["data"]["items"])
        following = answer["data"].get("next")
        after = None if following is None else {"after": following}
    assert seen >= count


def test_commands_read_it_too(scarred_daemon: Daemon) -> None:
    site = scarred_daemon.site
    assert site.answer("audit", "--event", "a:b")["items"]
    assert site.answer("review", "list")["items"]
    assert [one["agent_id"] for one in site.answer("agents")["items"]] == ["ann"]


def test_a_review_that_cannot_be_read_approves_nothing(scarred_daemon: Daemon) -> None:
    with scarred_daemon.operator() as operator:
        decided = operator.call(
            "review:decide", {"id": "row-0-approval-pending", "decision": "reject"}
        )
        assert decided["status"] == "rejected"


def test_mail_that_cannot_be_read_keeps_none_back(scarred_daemon: Daemon) -> None:
    with scarred_daemon.operator() as operator:
        assert operator.call("agent:status", {"agent_id": "ann"})["use"]["waiting_messages"] == 6
