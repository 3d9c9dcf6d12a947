"""Agents as resources: made, shown, changed and ended, in the order and with the settings given."""

from typing import Any

from tests.faces.http.world import World, served

from remit.features.messages.mailbox import Mailbox

WRONG = {"capabilities": ["current_tme"]}


async def make(world: World, who: dict[str, str], **fields: Any) -> Any:
    answer = await world.http.post("/v1/agents", json=fields, headers=who)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def test_an_agent_is_made_with_capabilities_in_order() -> None:
    async with served() as world:
        who = await world.headers()
        answer = await world.http.post(
            "/v1/agents",
            json={
                "name": "Research Assistant",
                "system_prompt": "You are a helpful research assistant.",
                "capabilities": ["test_math", "current_time"],
            },
            headers=who,
        )
        made = answer.json()
        assert answer.status_code == 201
        assert answer.headers["location"] == f"/v1/agents/{made['id']}"
        assert made["name"] == "Research Assistant"
        assert made["system_prompt"] == "You are a helpful research assistant."
        assert made["capabilities"] == ["test_math", "current_time"]
        assert made["status"] == "active"
        assert "math:add" in made["allowed_events"]
        assert made["credentials"]["token"]
        shown = (await world.http.get(f"/v1/agents/{made['id']}", headers=who)).json()
        del made["credentials"]
        assert made.pop("warnings") == []
        assert shown == made


async def test_a_list_of_capabilities_takes_the_place_of_the_one_before() -> None:
    async with served() as world:
        who = await world.headers()
        made = await make(world, who, id="bob", capabilities=["test_math", "current_time"])
        changed = await world.http.patch(
            "/v1/agents/bob", json={"capabilities": ["current_time"]}, headers=who
        )
        assert changed.status_code == 200
        assert changed.json()["capabilities"] == ["current_time"]
        assert "math:add" in made["allowed_events"]
        assert "math:add" not in changed.json()["allowed_events"]
        assert changed.json()["created_at"] == made["created_at"]


async def test_a_capability_may_have_settings() -> None:
    async with served() as world:
        who = await world.headers()
        made = await make(world, who, capabilities=["current_time", {"ref": "test_math"}])
        names = [one if isinstance(one, str) else one["ref"] for one in made["capabilities"]]
        assert names == ["current_time", "test_math"]


async def test_an_unknown_capability_is_refused_with_a_near_one() -> None:
    async with served() as world:
        who = await world.headers()
        await make(world, who, id="bob")
        for answer in (
            await world.http.post(
                "/v1/agents", json={"capabilities": ["current_tme"]}, headers=who
            ),
            await world.http.patch("/v1/agents/bob", json=WRONG, headers=who),
        ):
            assert answer.status_code == 422, answer.text
            assert "current_time" in answer.json()["hint"]


async def test_a_field_that_is_none_is_refused() -> None:
    async with served() as world:
        who = await world.headers()
        answer = await world.http.post("/v1/agents", json={"sytem_prompt": "x"}, headers=who)
        assert answer.status_code == 422
        hint = answer.json()["hint"]
        assert hint.startswith("did you mean 'system_prompt'? the fields here: additional_tools, ")


async def test_an_id_is_given_once() -> None:
    async with served() as world:
        who = await world.headers()
        await make(world, who, id="bob")
        again = await world.http.post("/v1/agents", json={"id": "bob"}, headers=who)
        assert (again.status_code, again.json()["code"]) == (409, "conflict")


async def test_agents_are_listed_in_the_order_in_which_they_came() -> None:
    async with served() as world:
        who = await world.headers()
        for name in ("zoe", "bob", "ann"):
            await make(world, who, id=name)
        page = (await world.http.get("/v1/agents?limit=2", headers=who)).json()
        assert [one["id"] for one in page["items"]] == ["zoe", "bob"]
        assert page["total"] == 3
        rest = await world.http.get("/v1/agents", params={"after": page["next"]}, headers=who)
        assert [one["id"] for one in rest.json()["items"]] == ["ann"]
        for query in ("limit=0", "limit=x", "limit=1&limit=2", "after=x", "page=2"):
            answer = await world.http.get(f"/v1/agents?{query}", headers=who)
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid_data"), query


async def test_an_ended_agent_is_gone_with_all_below_it() -> None:
    async with served() as world:
        who = await world.headers()
        made = await make(world, who, id="bob", profile="base_multi_agent")
        bob = {"Authorization": f"Bearer {made['credentials']['token']}"}
        await make(world, bob, id="kid")
        ended = await world.http.delete("/v1/agents/bob", headers=who)
        assert ended.json() == {"id": "bob", "terminated": ["bob", "kid"]}
        for name in ("bob", "kid"):
            gone = await world.http.get(f"/v1/agents/{name}", headers=who)
            assert (gone.status_code, gone.json()["code"]) == (404, "unknown_agent")
        assert (await world.http.delete("/v1/agents/bob", headers=who)).status_code == 404


async def test_nobody_sees_or_changes_agents_that_are_not_below_it() -> None:
    async with served() as world:
        who = await world.headers()
        made = await make(world, who, id="bob", profile="base_multi_agent")
        bob = {"Authorization": f"Bearer {made['credentials']['token']}"}
        await make(world, who, id="other")
        seen = (await world.http.get("/v1/agents", headers=bob)).json()
        assert [one["id"] for one in seen["items"]] == ["bob"]
        hidden = await world.http.get("/v1/agents/other", headers=bob)
        absent = await world.http.get("/v1/agents/othex", headers=bob)
        assert (hidden.status_code, absent.status_code) == (404, 404)
        told = hidden.json()["detail"].replace("other", "othex")
        assert (told, hidden.json()["hint"]) == (absent.json()["detail"], absent.json()["hint"])


async def test_a_child_never_gets_more_than_its_parent() -> None:
    async with served() as world:
        who = await world.headers()
        made = await make(world, who, id="bob", profile="base_multi_agent")
        bob = {"Authorization": f"Bearer {made['credentials']['token']}"}
        answer = await world.http.post(
            "/v1/agents", json={"additional_tools": ["key:add"]}, headers=bob
        )
        assert (answer.status_code, answer.json()["code"]) == (403, "exceeds_parent")


async def test_the_tag_of_an_agent_changes_with_it_and_only_then() -> None:
    async with served() as world:
        who = await world.headers()
        made = await make(world, who, id="bob")
        first = (await world.http.get("/v1/agents/bob", headers=who)).headers["etag"]
        bob = {"Authorization": f"Bearer {made['credentials']['token']}"}
        seen = await world.call(bob, "system:health")  # counted, and no change of the agent
        assert seen.status_code == 200
        world.desk.kernel.service(Mailbox).arrived("bob")
        again = (await world.http.get("/v1/agents/bob", headers=who)).headers["etag"]
        await world.http.patch("/v1/agents/bob", json={"system_prompt": "new"}, headers=who)
        changed = (await world.http.get("/v1/agents/bob", headers=who)).headers["etag"]
        assert first == again != changed


async def test_a_capability_is_made_out_of_what_one_holds() -> None:
    async with served() as world:
        who = await world.headers()
        body = {"id": "mine", "description": "Read", "event_patterns": ["state:get"]}
        made = await world.http.post("/v1/capabilities", json=body, headers=who)
        assert made.status_code == 201, made.text
        shown = await world.http.get("/v1/capabilities/mine", headers=who)
        assert shown.json()["events"] == ["state:get"]
        again = await world.http.post("/v1/capabilities", json=body, headers=who)
        assert again.status_code == 409


async def test_settings_that_a_capability_does_not_take_are_refused() -> None:
    async with served() as world:
        who = await world.headers()
        await make(world, who, id="bob", capabilities=["test_math"])
        asked = {"capabilities": [{"ref": "test_math", "config": {"x": 1}}]}
        for answer in (
            await world.http.post("/v1/agents", json=asked, headers=who),
            await world.http.patch("/v1/agents/bob", json=asked, headers=who),
        ):
            assert answer.json()["code"] == "invalid_data"
            assert answer.json()["details"]["path"] == "$.capabilities[0].config"


async def test_web_fetch_is_a_capability_that_needs_no_review() -> None:
    async with served() as world:
        who = await world.headers()
        made = await make(world, who, id="bob", capabilities=["current_time"])
        assert "web:web_fetch" not in made["allowed_events"]
        wanted = ["current_time", "web_fetch", "session_file_system"]
        changed = await world.http.patch(
            "/v1/agents/bob", json={"capabilities": wanted}, headers=who
        )
        assert changed.json()["capabilities"] == wanted
        assert changed.json()["warnings"] == []
        assert "web:web_fetch" in changed.json()["allowed_events"]
        assert changed.json()["allowed_claude_tools"] == []
        shown = (await world.http.get("/v1/capabilities/web_fetch", headers=who)).json()
        assert (shown["id"], shown["name"]) == ("web_fetch", "Web Fetch")
        assert (shown["icon"], shown["category"]) == ("globe", "Network")
        assert shown["security_review_required"] is False
        assert "system_prompt" not in shown
        above = (await world.http.get("/v1/capabilities/network_access", headers=who)).json()
        assert (above["requires"], above["claude_tools"]) == (
            ["web_fetch"],
            ["WebFetch", "WebSearch"],
        )
        assert above["security_review_required"] is True
        assert "icon" not in above
        listed = (await world.http.get("/v1/capabilities?limit=500", headers=who)).json()["items"]
        assert not [one for one in listed if one.get("icon") == "" or one.get("category") == ""]
