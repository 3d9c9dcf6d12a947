"""Who asks is who shows a token that counts, at that moment."""

from typing import Any

import anyio
import pytest
from tests.faces.http.world import PATIENCE, World, served

from remit.features.messages.mailbox import MailRows


async def status(world: World, headers: dict[str, str]) -> int:
    return (await world.http.get("/v1/agents", headers=headers)).status_code


@pytest.mark.parametrize(
    "shown",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Basic b3BlcmF0b3I6",
        "bearer\tx",
        "Bearer " + "x" * 5000,
        "Bearer operator",
        "Bearer operator-key",
        "Bearer éé",
    ],
)
async def test_without_a_token_that_counts_nobody_comes_in(shown: str) -> None:
    async with served() as world:
        async with world.raw() as stream:
            head = f"GET /v1/agents HTTP/1.1\r\nHost: localhost\r\nAuthorization: {shown}\r\n\r\n"
            await stream.send(head.encode())
            answer = await stream.receive()
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert b'"code":"unauthenticated"' in answer
        assert b"www-authenticate: Bearer" in answer


async def test_two_tokens_at_once_are_none() -> None:
    async with served() as world:
        token = await world.token()
        twice = [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {token}")]
        assert (await world.http.get("/v1/agents", headers=twice)).status_code == 401


async def test_every_route_but_the_probes_wants_a_token() -> None:
    async with served() as world:
        for method, path in [
            ("GET", "/v1/agents"),
            ("POST", "/v1/agents"),
            ("PATCH", "/v1/agents/a"),
            ("GET", "/v1/agents/a"),
            ("DELETE", "/v1/agents/a"),
            ("GET", "/v1/capabilities"),
            ("GET", "/v1/capabilities/a"),
            ("POST", "/v1/capabilities"),
            ("POST", "/v1/check"),
            ("POST", "/v1/events/system:health"),
            ("GET", "/v1/stream"),
        ]:
            answer = await world.http.request(method, path)
            assert answer.status_code == 401, (method, path)
        assert world.desk.counters.requests == 0
        assert world.face.stats.refused == 11


async def test_a_token_in_the_address_is_refused_even_beside_a_good_one() -> None:
    async with served() as world:
        token = await world.token()
        for name in ("token", "access_token", "Access_Token", "api_key"):
            path = f"/v1/agents?{name}={token}"
            assert (await world.http.get(path)).status_code == 401
            good = {"Authorization": f"Bearer {token}"}
            assert (await world.http.get(path, headers=good)).status_code == 401
        assert (await world.http.get(f"/metrics?token={token}")).status_code == 401


async def test_a_cookie_is_not_looked_at() -> None:
    async with served() as world:
        token = await world.token()
        assert (
            await status(world, {"Cookie": f"token={token}; Authorization=Bearer {token}"}) == 401
        )


async def test_a_token_ends_at_its_time() -> None:
    async with served() as world:
        who = await world.headers(expires_in=60)
        assert await status(world, who) == 200
        ring = world.desk.keyring.tokens
        now = ring.clock()
        ring.clock = lambda: now + 59
        assert await status(world, who) == 200
        ring.clock = lambda: now + 61
        assert await status(world, who) == 401


async def test_a_token_for_another_face_does_not_count_here() -> None:
    async with served() as world:
        assert await status(world, await world.headers(audience="mcp")) == 401


async def test_a_revoked_token_is_refused_at_once_and_others_go_on() -> None:
    async with served() as world:
        made = await world.desk.ask("operator", "key:token")
        who = {"Authorization": f"Bearer {made['token']}"}
        other = await world.headers()
        assert await status(world, who) == 200
        await world.desk.ask("operator", "key:revoke_token", {"id": made["id"]})
        assert await status(world, who) == 401
        assert await status(world, other) == 200


async def test_a_token_of_a_revoked_client_is_refused_even_when_the_name_comes_back() -> None:
    async with served() as world:
        await world.add("eve", "observer")
        who = await world.headers("eve")
        assert (await world.call(who, "system:health")).status_code == 200
        await world.desk.ask("operator", "key:revoke", {"name": "eve"})
        assert (await world.call(who, "system:health")).status_code == 401
        await world.add("eve", "administrator")
        assert (await world.call(who, "system:health")).status_code == 401


async def test_a_spawned_agent_comes_in_with_its_own_token_until_it_is_ended() -> None:
    async with served() as world:
        made = await world.desk.ask("operator", "agent:spawn", {"profile": "observer"})
        who = {"Authorization": f"Bearer {made['credentials']['token']}"}
        answer = await world.call(who, "permission:check", {"event": "system:health"})
        assert answer.json()["agent"] == made["agent_id"]
        await world.desk.ask("operator", "agent:terminate", {"agent_id": made["agent_id"]})
        assert (await world.call(who, "system:health")).status_code == 401


async def test_no_token_is_kept_and_none_is_listed() -> None:
    async with served() as world:
        token = await world.token()
        assert await world.desk.ask("operator", "key:tokens") is not None
        listed = await world.desk.ask("operator", "key:tokens")
        kept = await world.desk.store.token_list()
        assert token not in str(listed) + str(kept)
        assert [one["name"] for one in listed["items"]] == ["operator"]


async def test_a_call_that_runs_ends_when_its_caller_is_shut_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with served() as world:
        made = await world.desk.ask("operator", "agent:spawn", {"profile": "base_multi_agent"})
        who = {"Authorization": f"Bearer {made['credentials']['token']}"}
        name = made["agent_id"]
        gate = anyio.Event()

        async def slow(_rows: MailRows, _to: str) -> int:
            gate.set()
            await anyio.sleep_forever()
            return 0

        monkeypatch.setattr(MailRows, "mail_count", slow)
        answers: list[Any] = []

        async def ask() -> None:
            path = f"/v1/agents/{name}"
            answers.append(await world.http.get(path, headers=who))

        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await gate.wait()
                await world.desk.ask("operator", "agent:terminate", {"agent_id": name})
        assert answers[0].status_code == 503
