"""Agents: what a child gets, what it never gets, and who may end it."""

import hashlib
from typing import Any

import anyio
import msgspec
import pytest
from tests.family import Family, family_files, public_key

BASE = [
    "permission:check",
    "permission:check_many",
    "permission:explain",
    "permission:matrix",
    "system:health",
]


@pytest.fixture
async def family() -> Family:
    made = Family()
    await made.spawn("operator", "boss", "boss")
    return made


async def test_the_spawner_is_the_parent_and_the_operators_children_have_none(
    family: Family,
) -> None:
    child = await family.spawn("boss", "kid", "helper")
    assert (child["agent_id"], child["parent"]) == ("kid", "boss")
    assert {"state:get", "state:list"} <= set(child["allowed_events"])
    assert (await family.ask("operator", "agent:status", {"agent_id": "boss"}))["parent"] is None


async def test_without_a_profile_a_child_has_only_what_everybody_has(family: Family) -> None:
    events = (await family.spawn("boss", "kid"))["allowed_events"]
    assert set(events) - {"permission:changed", "permission:who_can"} == set(BASE)


async def test_only_a_child_that_is_said_to_inherit_has_all_of_its_parent(family: Family) -> None:
    child = await family.spawn("boss", "kid", inherit=True, disallowed_tools=["state:set"])
    assert "state:set" not in child["allowed_events"]
    assert {"state:delete", "agent:spawn"} <= set(child["allowed_events"])
    assert child["allowed_claude_tools"] == ["WebFetch"]
    assert not await family.allowed("kid", "state:set")


@pytest.mark.parametrize("beside", [{"profile": "helper"}, {"capabilities": {"read": True}}])
async def test_inheriting_beside_something_that_adds_is_refused(
    family: Family, beside: dict[str, Any]
) -> None:
    code, details = await family.refused("boss", "agent:spawn", {"inherit": True} | beside)
    assert (code, details["path"]) == ("invalid_data", "$.inherit")


async def test_the_operators_own_rights_are_not_inherited(family: Family) -> None:
    assert (await family.refused("operator", "agent:spawn", {"inherit": True}))[0] == "invalid_data"


async def rows(family: Family, **where: Any) -> list[Any]:
    page = await family.store.audit_query(limit=10, **where)
    return [msgspec.json.decode(row.entry.details) for row in page.items]


async def test_a_profile_above_the_caller_is_as_if_it_did_not_exist(family: Family) -> None:
    await family.spawn("boss", "lead", "lead")
    for more in ({}, {"on_excess": "narrow"}, {"disallowed_tools": ["state:set"]}):
        answers = []
        for profile in ("boss", "bosx"):
            answer = await family.answer("lead", "agent:spawn", {"profile": profile} | more)
            assert answer.error is not None
            answers.append(repr(answer.error).replace(profile, "…"))
        assert answers[0] == answers[1]
        assert "not_found" in answers[0]
    assert family.authority.fleet.children("lead") == []


async def test_an_excess_names_what_the_request_names_and_the_audit_all_of_it(
    family: Family,
) -> None:
    await family.spawn("boss", "lead", "lead")
    await family.ask("operator", "agent:update", {"agent_id": "lead", "profile": "corner"})
    await family.ask(
        "operator", "agent:update", {"agent_id": "lead", "disallowed_tools": ["state:get"]}
    )
    asked = {
        "capabilities": {"write": True},
        "additional_tools": ["system:stats", "no:such", "WebFetch", "state:list"],
    }
    code, details = await family.refused("lead", "agent:spawn", asked)
    named = ["write", "no:such", "system:stats", "WebFetch"]
    assert (code, details) == ("exceeds_parent", {"excess": named})
    (failed,) = await rows(family, outcome="failed")
    assert failed["excess"] == ["no:such", "state:get", "system:stats", "WebFetch"]
    assert family.authority.fleet.children("lead") == []


async def test_an_agent_that_lost_a_part_of_its_profile_may_still_give_the_rest(
    family: Family,
) -> None:
    await family.spawn("boss", "lead", "lead")
    change = {"agent_id": "lead", "disallowed_tools": ["state:set"]}
    await family.ask("boss", "agent:update", change)
    code, details = await family.refused("lead", "agent:spawn", {"profile": "lead"})
    assert (code, details) == ("exceeds_parent", {"excess": ["lead"]})
    child = await family.spawn("lead", "kid", "lead", on_excess="narrow")
    assert child["cut"] == {"events": [], "claude_tools": []}
    assert "state:set" not in child["allowed_events"]
    assert not await family.allowed("kid", "state:set")


async def test_the_operator_is_told_the_whole_excess_and_the_whole_cut(family: Family) -> None:
    await family.spawn("boss", "lead", "lead")
    await family.spawn("lead", "kid", "helper")
    data = {"agent_id": "kid", "profile": "boss"}
    code, details = await family.refused("operator", "agent:update", data)
    excess = {"events": ["system:stats"], "claude_tools": ["WebFetch"]}
    assert (code, details) == ("exceeds_parent", {"excess": ["system:stats", "WebFetch"]} | excess)
    told = await family.ask("operator", "agent:update", data | {"on_excess": "narrow"})
    assert told["cut"] == excess


async def test_a_pattern_gives_what_the_giver_holds_of_it_and_tells_of_nothing_else(
    family: Family,
) -> None:
    await family.spawn("boss", "lead", "lead", disallowed_tools=["state:set", "state:delete"])
    given = await family.spawn("lead", "kid", additional_tools=["state:*"])
    assert {"state:get", "state:list"} <= set(given["allowed_events"])
    assert not {"state:set", "state:delete"} & set(given["allowed_events"])
    answers = []
    for at, pattern in enumerate(("key:*", "kez:*")):
        await family.ask("boss", "agent:terminate", {"agent_id": "kid" if at == 0 else "kid0"})
        told = await family.spawn("lead", f"kid{at}", additional_tools=[pattern])
        assert [one["code"] for one in told["warnings"]] == ["dead_pattern"]
        shown = {name: told[name] for name in ("allowed_events", "warnings", "limits")}
        answers.append(repr(shown).replace(pattern, "…").replace(f"kid{at}", "kid"))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("on", [True, False])
async def test_a_capability_out_of_sight_is_as_if_it_did_not_exist(
    family: Family, *, on: bool
) -> None:
    await family.spawn("boss", "lead", "lead")
    answers = []
    for name in ("web", "wex"):
        answer = await family.answer("lead", "agent:spawn", {"capabilities": {name: on}})
        assert answer.error is not None
        answers.append(repr(answer.error).replace(name, "…"))
    assert answers[0] == answers[1]
    assert "invalid_data" in answers[0]


async def test_a_name_that_is_taken_out_of_sight_is_no_conflict(family: Family) -> None:
    await family.client("carl", "helper")
    await family.spawn("operator", "stranger", "helper")
    await family.spawn("boss", "kid", "helper")
    for name in ("carl", "stranger"):
        made = await family.spawn("boss", name, "helper")
        assert made["agent_id"].startswith(f"{name}-")
        assert made["parent"] == "boss"
        await family.ask("boss", "agent:terminate", {"agent_id": made["agent_id"]})
    for name in ("kid", "boss"):
        assert (await family.refused("boss", "agent:spawn", {"agent_id": name}))[0] == "conflict"
    for name in ("carl", "stranger", "kid"):
        assert (await family.refused("operator", "agent:spawn", {"agent_id": name}))[
            0
        ] == "conflict"


async def test_whether_an_event_exists_is_not_told_by_what_may_be_added(family: Family) -> None:
    for event in ("key:add", "key:nope"):
        code, details = await family.refused("boss", "agent:spawn", {"additional_tools": [event]})
        assert (code, details["excess"]) == ("exceeds_parent", [event])
        code, _ = await family.refused("boss", "agent:spawn", {"disallowed_tools": [event]})
        assert code == "invalid_data"


async def test_a_child_without_a_key_gets_a_pair_and_a_token_of_which_a_hash_is_kept(
    family: Family,
) -> None:
    made = await family.ask("boss", "agent:spawn", {"profile": "helper"})
    credentials = made["credentials"]
    assert set(credentials) == {"public_key", "secret_key", "token"}
    assert made["agent_id"].startswith("helper-")
    record = (await family.store.agent_list())[-1]
    assert record.token_hash == hashlib.sha256(credentials["token"].encode()).hexdigest()
    kept = repr(await family.store.agent_list())
    assert credentials["token"] not in kept
    assert credentials["secret_key"] not in kept


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param({"parent": "operator"}, "invalid_data", id="a-forged-parent"),
        pytest.param({"agent_id": "operator"}, "conflict", id="the-operators-name"),
        pytest.param({"agent_id": "boss"}, "conflict", id="a-taken-name"),
        pytest.param({"agent_id": "Bob"}, "invalid_data", id="not-a-name"),
        pytest.param({"agent_id": "bob\n"}, "invalid_data", id="not-quite-a-name"),
        pytest.param({"profile": "nope"}, "not_found", id="no-such-profile"),
        pytest.param({"public_key": "x" * 39}, "invalid_data", id="not-a-key"),
        pytest.param({"public_key": "~" * 40}, "invalid_data", id="not-a-key-either"),
        pytest.param({"capabilities": {"nope": True}}, "invalid_data", id="no-such-capability"),
        pytest.param({"variables": {"x": 1}}, "invalid_data", id="no-such-variable"),
        pytest.param({"additional_tools": ["A b"]}, "invalid_data", id="not-a-tool"),
        pytest.param({"additional_tools": ["*"]}, "invalid_data", id="everything"),
        pytest.param({"limits": {"max_chidren": 1}}, "invalid_data", id="a-typo-in-a-limit"),
        pytest.param({"limits": {"max_children": -1}}, "invalid_data", id="less-than-nothing"),
        pytest.param({"launch": {"command": "sh"}}, "invalid_data", id="a-process"),
    ],
)
async def test_a_spawn_that_makes_no_sense_is_refused_and_leaves_nothing(
    family: Family, data: dict[str, Any], code: str
) -> None:
    assert (await family.refused("boss", "agent:spawn", data))[0] == code
    assert len(await family.store.agent_list()) == 1
    assert family.authority.fleet.names() == ["boss"]


async def test_a_key_that_somebody_holds_or_ever_held_is_refused(family: Family) -> None:
    key = public_key()
    await family.spawn("boss", "kid", public_key=key)
    assert (await family.refused("boss", "agent:spawn", {"public_key": key}))[0] == "conflict"
    await family.ask("boss", "agent:terminate", {"agent_id": "kid"})
    assert (await family.refused("boss", "agent:spawn", {"public_key": key}))[0] == "conflict"
    assert family.keyring.name_of_key(key) is None


async def test_children_are_counted_live_and_freed_on_termination(family: Family) -> None:
    await family.spawn("boss", "lead", "lead")
    for name in ("one", "two"):
        await family.spawn("lead", name)
    code, details = await family.refused("lead", "agent:spawn", {"agent_id": "three"})
    assert (code, details["limit"]) == ("limit_exceeded", "max_children")
    assert details["retry_after"] > 0
    await family.ask("lead", "agent:terminate", {"agent_id": "one"})
    await family.spawn("lead", "three")


async def test_two_that_are_spawned_at_once_do_not_pass_the_limit_together(family: Family) -> None:
    await family.spawn("boss", "lead", "lead")
    await family.spawn("lead", "one")
    codes: list[str] = []

    async def spawn(name: str) -> None:
        answer = await family.answer("lead", "agent:spawn", {"agent_id": name})
        codes.append("" if answer.error is None else answer.error.code)

    async with anyio.create_task_group() as tasks:
        for name in ("two", "three", "four"):
            tasks.start_soon(spawn, name)
    assert sorted(codes) == ["", "limit_exceeded", "limit_exceeded"]
    assert len(family.authority.fleet.children("lead")) == 2


async def test_how_deep_a_tree_may_be_is_the_limit_of_every_ancestor(family: Family) -> None:
    await family.spawn("boss", "lead", "lead")
    await family.spawn("lead", "kid", inherit=True)
    await family.spawn("kid", "grandkid", inherit=True)
    code, details = await family.refused("grandkid", "agent:spawn", {})
    assert (code, details["limit"]) == ("limit_exceeded", "max_depth")


async def test_no_tree_is_deeper_than_32_whatever_the_limits_say(family: Family) -> None:
    above = "boss"
    for depth in range(1, 33):
        await family.spawn(above, f"a{depth}", inherit=True)
        above = f"a{depth}"
    assert (await family.refused(above, "agent:spawn", {}))[0] == "limit_exceeded"


async def test_ending_an_agent_ends_all_below_it_at_once(family: Family) -> None:
    await family.spawn("boss", "lead", "lead")
    key = public_key()
    await family.spawn("lead", "kid", "helper", public_key=key)
    ended = await family.ask("operator", "agent:terminate", {"agent_id": "lead"})
    assert ended["terminated"] == ["lead", "kid"]
    assert family.keyring.name_of_key(key) is None
    assert (await family.refused("kid", "state:get", {"key": "a"}))[0] == "denied"
    assert [r.id for r in await family.store.agent_list()] == ["boss"]


async def test_an_agent_may_end_itself(family: Family) -> None:
    await family.spawn("boss", "lead", "lead")
    await family.ask("lead", "agent:terminate", {"agent_id": "lead"})
    assert "lead" not in family.authority.fleet


@pytest.mark.parametrize("event", ["agent:terminate", "agent:status", "agent:update"])
async def test_others_do_not_exist_for_those_who_are_not_above_them(
    family: Family, event: str
) -> None:
    await family.spawn("boss", "one", "mute")
    await family.spawn("boss", "two", "lead")
    await family.spawn("two", "kid")
    answers = []
    for name in ("one", "boss", "nobody"):
        answer = await family.answer("two", event, {"agent_id": name})
        assert answer.error is not None
        answers.append((answer.error.code, answer.error.message.replace(name, "X")))
    assert set(answers) == {("unknown_agent", "there is no agent 'X' that you may ask about")}


async def test_a_client_is_ended_as_its_key_is_revoked(family: Family) -> None:
    await family.client("carl", "lead")
    await family.spawn("carl", "kid")
    assert (await family.refused("boss", "agent:terminate", {"agent_id": "carl"}))[
        0
    ] == "unknown_agent"
    ended = await family.ask("operator", "agent:terminate", {"agent_id": "carl"})
    assert ended["terminated"] == ["carl", "kid"]
    assert await family.store.key_get("carl") is None


async def test_narrowing_a_parent_narrows_the_whole_tree(family: Family) -> None:
    await family.spawn("boss", "lead", "lead")
    await family.spawn("lead", "kid", "writer")
    await family.spawn("boss", "other", "writer")
    changes = {"agent_id": "lead", "disallowed_tools": ["state:set"]}
    told = await family.ask("boss", "agent:update", changes)
    assert "state:set" not in told["allowed_events"]
    assert not await family.allowed("kid", "state:set")
    assert await family.allowed("other", "state:set")
    await family.ask("boss", "agent:update", {"agent_id": "lead", "disallowed_tools": []})
    assert await family.allowed("kid", "state:set")


async def test_an_update_cannot_give_more_than_the_parent_or_the_giver_has(family: Family) -> None:
    await family.spawn("boss", "lead", "lead")
    await family.spawn("lead", "kid", "helper")
    data = {"agent_id": "kid", "profile": "boss"}
    told = {"lead": ("not_found", None), "boss": ("exceeds_parent", ["boss"])}
    told["operator"] = ("exceeds_parent", ["system:stats", "WebFetch"])
    for who, expected in told.items():
        code, details = await family.refused(who, "agent:update", data)
        assert (code, details.get("excess")) == expected
    assert (await family.refused("lead", "agent:update", {"agent_id": "lead"}))[0] == "denied"


async def test_the_list_shows_the_callers_own_tree_a_page_at_a_time(family: Family) -> None:
    await family.spawn("boss", "lead", "lead")
    await family.spawn("lead", "kid")
    await family.spawn("operator", "stranger", "helper")
    shown = await family.ask("lead", "agent:list")
    assert ([i["agent_id"] for i in shown["items"]], shown["total"]) == (["lead", "kid"], 2)
    names: list[str] = []
    after: str | None = ""
    while after is not None:
        page = await family.ask("operator", "agent:list", {"limit": 1, "after": after})
        names += [item["agent_id"] for item in page["items"]]
        after = page["next"]
    assert names == ["boss", "lead", "kid", "stranger"]
    assert (await family.refused("lead", "agent:list", {"after": "x"}))[0] == "invalid_data"


async def test_a_check_about_a_descendant_and_the_ancestor_that_cuts(family: Family) -> None:
    await family.spawn("boss", "lead", "lead")
    await family.spawn("lead", "kid", "writer")
    await family.ask("boss", "agent:update", {"agent_id": "lead", "disallowed_tools": ["state:*"]})
    question = {"event": "state:set", "agent": "kid"}
    assert not (await family.ask("boss", "permission:check", question)).allowed
    for who in ("operator", "boss"):
        told = await family.ask(who, "permission:explain", question)
        assert (told["allowed"], told["cut_by"]) == (False, "lead")
        assert [rule["capability"] for rule in told["granted_by"]] == ["write"]
    assert (await family.ask("kid", "permission:explain", {"event": "state:set"}))[
        "cut_by"
    ] == "lead"
    assert (await family.refused("kid", "permission:check", question | {"agent": "lead"}))[
        0
    ] == "unknown_agent"


async def test_a_profile_that_vanishes_takes_the_rights_of_its_agents_along(
    family: Family,
) -> None:
    await family.spawn("boss", "lead", "lead")
    await family.spawn("lead", "kid", inherit=True)
    files = family_files()
    contents = {n: t for n, t in files.contents.items() if "lead" not in n}
    family.files = type(files)(files.catalogue, sorted(set(contents) - {files.catalogue}), contents)
    family.authority.put_in_force(family.authority.prepare())
    for name in ("lead", "kid"):
        assert await family.allowed(name, "system:health")  # what everybody has stays
        assert not await family.allowed(name, "agent:spawn")
