"""Requests as they travel: data that do not fit, revisions asked for, and JSON on a bare socket."""

from collections.abc import Iterator

import msgspec
import pytest
import zmq
from tests.acceptance.site import PATIENCE, Daemon

from remit_client import Conflict, InvalidData, RemitError, TooLarge
from remit_client.keys import Key, load_key
from remit_client.sync import Client


@pytest.fixture(scope="module")
def operator(daemon: Daemon) -> Iterator[Client]:
    with daemon.operator() as client:
        yield client


@pytest.mark.parametrize(
    ("event", "data", "path", "said"),
    [
        pytest.param("state:get", {"key": 7}, "$.key", "str", id="wrong-type"),
        pytest.param("state:get", {"key": ""}, "$.key", "length", id="too-short"),
        pytest.param("state:list", {"limit": 0}, "$.limit", ">= 1", id="too-small"),
        pytest.param("state:list", {"limit": True}, "$.limit", "int", id="a-bool-is-no-number"),
        pytest.param("state:get", {}, "$.key", "missing", id="missing"),
        pytest.param("state:get", None, "$.key", "missing", id="no-data-at-all"),
        pytest.param("state:get", [1], "$", "array", id="not-a-map"),
        pytest.param("state:get", {"key": "a", "keey": 1}, "$.keey", "unknown", id="unknown-field"),
        pytest.param(
            "permission:check_many", {"events": ["a:b", 1]}, "$.events[1]", "str", id="in-a-list"
        ),
    ],
)
def test_data_that_do_not_fit_are_refused_with_their_path(
    operator: Client, event: str, data: object, path: str, said: str
) -> None:
    with pytest.raises(InvalidData) as caught:
        operator.call(event, data)
    assert caught.value.details["path"] == path
    assert said in caught.value.message
    assert caught.value.decision


def test_a_misspelt_field_is_answered_with_what_was_meant(operator: Client) -> None:
    with pytest.raises(InvalidData) as caught:
        operator.call("state:list", {"prefx": "a"})
    assert caught.value.hint == "did you mean 'prefix'? the fields here: after, limit, prefix"


def test_a_value_has_a_limit_of_256_kb_to_the_byte(operator: Client) -> None:
    fits = "x" * (262_144 - 2)  # and two quotation marks
    operator.call("state:set", {"key": "big", "value": fits})
    with pytest.raises(TooLarge) as caught:
        operator.call("state:set", {"key": "big", "value": fits + "x"})
    assert "262,144" in caught.value.message
    assert operator.call("state:get", {"key": "big"})["value"] == fits


def test_a_revision_that_is_not_there_yet_is_a_conflict(operator: Client) -> None:
    assert operator.ask("system:health", min_revision=1).revision == 1
    with pytest.raises(Conflict) as caught:
        operator.call("system:health", min_revision=2)
    assert caught.value.details == {"revision": 1}


def test_a_denied_request_is_denied_before_its_revision_or_data_are_looked_at(
    daemon: Daemon,
) -> None:
    with daemon.client("bob", "observer") as bob:
        for data in (None, {"nonsense": 1}, {"key": 7}):
            with pytest.raises(RemitError) as caught:
                bob.call("state:set", data, min_revision=99)
            assert caught.value.code == "denied"


def test_any_language_can_ask_in_json(daemon: Daemon) -> None:
    key: Key = load_key(daemon.home / "operator.key")
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.curve_serverkey = (daemon.home / "server.pub").read_bytes().strip()
        socket.curve_publickey = key.public_key.encode()
        socket.curve_secretkey = key.secret_key.encode()
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, int(PATIENCE * 1000))
        socket.connect(daemon.endpoint)
        body = b'{"id": "a-1", "event": "permission:check", "data": {"event": "state:set"}}'
        socket.send_multipart([b"J1", b"Q", body])
        version, kind, answer = socket.recv_multipart()
    assert (version, kind) == (b"J1", b"A")
    told = msgspec.json.decode(answer)
    assert told.pop("decision")
    assert told == {
        "id": "a-1",
        "ok": True,
        "data": {
            "allowed": True,
            "reason": "granted",
            "event": "state:set",
            "agent": "operator",
            "revision": 1,
        },
        "revision": 1,
    }


def test_a_request_about_oneself_needs_no_data(operator: Client) -> None:
    assert operator.call("self/tools") == operator.call("self/tools", {})
