"""Nothing that a client sends costs others anything, and all of it is answered in one form."""

import json

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.faces.http.world import PATIENCE, World, everything, served

from remit.faces.http.gateway import read_object
from remit.faces.http.responses import ProblemError
from remit.faces.http.server import HttpLimits

HOST = "Host: localhost"

JSON = {"Content-Type": "application/json"}


async def post(world: World, content: bytes, headers: dict[str, str]) -> tuple[int, str]:
    who = await world.headers()
    answer = await world.http.post("/v1/events/state:get", content=content, headers=who | headers)
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["code"]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"nonsense",
        b"[]",
        b'"text"',
        b"null",
        b"1",
        b'{"key": NaN}',
        b'{"key": "\\ud800"}',
        b'{"key": "a", "key": "b"}',
        b'{"key": "a", "x": {"b": 1, "b": 2}}',
        b'{"key": "a"} {"key": "b"}',
        b"\xff\xfe{}",
        b"[" * 100_000,
        b'{"a":' * 50_000,
    ],
)
async def test_a_body_without_one_meaning_is_refused(body: bytes) -> None:
    async with served() as world:
        assert await post(world, body, JSON) == (400, "bad_frame")


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "a/b/c"]
)
async def test_a_body_of_another_kind_is_refused(kind: str) -> None:
    async with served() as world:
        found = await post(world, b'{"key": "a"}', {"Content-Type": kind})
        assert found == (415, "unsupported_media_type")


async def test_data_that_do_not_fit_are_told_with_their_place() -> None:
    async with served() as world:
        answer = await world.call(await world.headers(), "state:get", {"key": 5})
        assert (answer.status_code, answer.json()["details"]["path"]) == (422, "$.key")


@given(
    st.recursive(
        st.none() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_every_object_without_a_repeated_key_is_read_as_it_is(value: object) -> None:
    body = {"a:b": value, '"': ["\\", {":": value}]}
    assert read_object(json.dumps(body).encode()) == json.loads(json.dumps(body))


@given(st.text(), st.text(), st.text())
def test_a_repeated_key_is_found_wherever_it_stands(outer: str, key: str, other: str) -> None:
    twice = f"{json.dumps(key)}: 1, {json.dumps(key)}: {json.dumps(other)}"
    with pytest.raises(ProblemError):
        read_object(f"{{{json.dumps(outer)}: [{{{twice}}}]}}".encode())


async def test_a_body_of_100_mb_is_refused_before_it_is_sent() -> None:
    async with served() as world:
        token = await world.token()
        async with world.raw() as stream:
            await stream.send(_head(token, "Content-Length: 104857600"))
            answer = await everything(stream)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"connection: close" in answer.lower()
        assert b'"code":"too_large"' in answer


async def test_a_body_that_grows_without_a_length_is_cut_off_at_the_limit() -> None:
    async with served(limits=HttpLimits(body_bytes=100_000, drain_seconds=1)) as world:
        token = await world.token()
        async with world.raw() as stream:
            await stream.send(_head(token, "Transfer-Encoding: chunked"))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_flood, stream)
                answer = await everything(stream)
                tasks.cancel_scope.cancel()
        assert answer.startswith(b"HTTP/1.1 413 ") or answer == b""  # lost when cut while sending


async def test_bodies_of_one_caller_are_bounded_in_bytes_from_the_first_to_the_answer() -> None:
    limits = HttpLimits(bodies_bytes=2_000, drain_seconds=1)
    data = {"key": "k" * 400}
    async with served(limits=limits) as world:
        await world.add("bob", "observer")
        mine, bob = await world.token(), await world.headers("bob")
        who = {"Authorization": f"Bearer {mine}"}
        async with world.raw() as stream:
            await stream.send(_head(mine, "Content-Length: 9000") + b'{"key": "' + b"x" * 1_900)
            with anyio.fail_after(PATIENCE):
                while (answer := await world.call(who, "state:get", data)).status_code != 429:
                    assert answer.json()["code"] == "not_found"
            assert answer.json()["code"] == "limit_exceeded"
            assert answer.headers["retry-after"] == "1"
            assert (await world.call(bob, "state:get", data)).json()["code"] == "not_found"
        with anyio.fail_after(PATIENCE):
            while (await world.call(who, "state:get", data)).status_code == 429:
                pass


async def _flood(stream: anyio.abc.SocketStream) -> None:
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    try:
        for _ in range(1600):
            await stream.send(chunk)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass


def _head(token: str, *lines: str) -> bytes:
    head = [
        "POST /v1/events/state:get HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        *lines,
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n"


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: b"])
async def test_a_head_that_does_not_come_to_its_end_is_cut(sent: bytes) -> None:
    async with served(limits=HttpLimits(header_seconds=0.2, drain_seconds=1)) as world:
        async with world.raw() as stream:
            if sent:
                await stream.send(sent)
            await everything(stream)
        assert world.face.stats.cut == 1


async def test_a_second_head_on_the_same_connection_has_the_same_deadline() -> None:
    async with served(limits=HttpLimits(header_seconds=0.3, drain_seconds=1)) as world:
        async with world.raw() as stream:
            await stream.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            first = await stream.receive()
            assert first.startswith(b"HTTP/1.1 200")
            await stream.send(b"GET /hea")
            await everything(stream)
        assert world.face.stats.cut == 1


async def test_one_byte_at_a_time_does_not_move_the_deadline() -> None:
    async with served(limits=HttpLimits(header_seconds=0.3, drain_seconds=1)) as world:
        async with world.raw() as stream, anyio.create_task_group() as tasks:

            async def drip() -> None:
                try:
                    await stream.send(b"GET / HTTP/1.1\r\nX: ")
                    while True:
                        await stream.send(b"a")
                        await anyio.sleep(0.02)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    pass

            tasks.start_soon(drip)
            await everything(stream)
            tasks.cancel_scope.cancel()
        assert world.face.stats.cut == 1


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async with served(limits=HttpLimits(body_seconds=0.2, drain_seconds=1)) as world:
        token = await world.token()
        async with world.raw() as stream:
            await stream.send(_head(token, "Content-Length: 100") + b'{"key"')
            answer = b""
            with anyio.fail_after(PATIENCE):
                while b"request_id" not in answer:
                    answer += await stream.receive()
        assert answer.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX" + b"y" * 40_000,
        b"GET / HTTP/1.1\r\nX : y\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
async def test_what_is_no_http_is_refused_in_the_same_form(sent: bytes) -> None:
    async with served(limits=HttpLimits(header_seconds=1, drain_seconds=1)) as world:
        async with world.raw() as stream:
            await stream.send(sent)
            answer = await everything(stream)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")
        assert answer == b"" or b"application/problem+json" in answer
        assert (await world.http.get("/healthz")).status_code == 200


async def test_a_header_cannot_be_smuggled_into_an_answer() -> None:
    async with served() as world:
        who = await world.headers()
        for path in ("/v1/agents/a%0d%0aX-Evil:%201", "/v1/events/a%0d%0aX-Evil:%201"):
            for answer in (
                await world.http.get(path, headers=who),
                await world.http.post(path, headers=who),
            ):
                assert "x-evil" not in answer.headers
                assert answer.status_code in (403, 404, 405)
        shown = await world.http.get("/healthz", headers={"X-Request-Id": "a%0d%0aX-Evil: 1"})
        assert "x-evil" not in shown.headers


@pytest.mark.parametrize(
    "name",
    ["..", "%2e%2e", ".", "%00", "a%00b", "%ff", "..%5c..", "a b", "%F0%9F%92%A9", "x" * 200],
)
async def test_an_id_that_is_none_is_just_not_found(name: str) -> None:
    async with served() as world:
        who = await world.headers()
        async with world.raw() as stream:
            for kind in ("agents", "capabilities"):
                target = f"/v1/{kind}/{name.replace(' ', '%20')}"
                head = f"GET {target} HTTP/1.1\r\n{HOST}\r\nAuthorization: {who['Authorization']}"
                await stream.send(head.encode() + b"\r\n\r\n")
                answer = await stream.receive()
                assert answer.startswith(b"HTTP/1.1 404 "), answer[:100]


@pytest.mark.parametrize(
    "name", ["STATE:GET", "state:get%20", "state:get%00", "*", "state:*", "%F0"]
)
async def test_an_event_is_named_exactly(name: str) -> None:
    async with served() as world:
        await world.add("ann", "administrator")
        answer = await world.http.post(
            f"/v1/events/{name}", json={"key": "a"}, headers=await world.headers("ann")
        )
        assert answer.status_code in (403, 404)


async def test_more_calls_at_once_than_allowed_are_told_to_wait() -> None:
    async with served(limits=HttpLimits(in_flight=0, drain_seconds=1)) as world:
        answer = await world.http.get("/v1/agents", headers=await world.headers())
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")


async def test_a_limit_of_a_profile_is_a_429_with_its_time() -> None:
    async with served() as world:
        data = {"profile": "observer", "limits": {"max_calls_per_minute": 1}}
        made = await world.desk.ask("operator", "agent:spawn", data)
        who = {"Authorization": f"Bearer {made['credentials']['token']}"}
        assert (await world.call(who, "system:health")).status_code == 200
        again = await world.call(who, "system:health")
        assert (again.status_code, again.json()["code"]) == (429, "limit_exceeded")
        assert 1 <= int(again.headers["retry-after"]) <= 60


async def test_only_so_many_connections_are_taken() -> None:
    limits = HttpLimits(connections=1, quiet_seconds=60, drain_seconds=1)
    async with served(limits=limits) as world, world.raw() as first:
        await first.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await first.receive()).startswith(b"HTTP/1.1 200")
        async with world.raw() as second:
            assert await everything(second) == b""


async def test_who_asks_nothing_makes_room_for_who_does() -> None:
    limits = HttpLimits(connections=2, quiet_seconds=0.05, drain_seconds=1)
    async with served(limits=limits) as world, world.raw() as first, world.raw() as second:
        await first.send(b"GET / HT")
        await second.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await second.receive()).startswith(b"HTTP/1.1 200")
        with anyio.fail_after(PATIENCE):
            while not await _is_served(world):
                await anyio.lowlevel.checkpoint()
        assert await everything(first) == b""


async def _is_served(world: World) -> bool:
    async with world.raw() as third:
        try:
            await third.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return (await third.receive()).startswith(b"HTTP/1.1 200")
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return False
