"""What a host runs an agent with: its prompt in order, its tools, and how it came by them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes import texts
from tests.family import PROFILES, Family

from remit.config.definitions.files import Files
from remit.kernel.authority.standing import agent_of
from remit.text.fence import fenced_capability

CATALOGUE = """
  base:
    description: b
    event_patterns: [system:health, agent:runtime]
    always_included: true
    mcp_tools: false
  read: {description: r, event_patterns: [state:get, state:list], system_prompt: Read first.}
  write:
    description: w
    event_patterns: [state:set]
    requires: [read]
    system_prompt: Write later.
    resource_limits: {max_calls_per_minute: 30}
  talk: {description: t, event_patterns: [agent:send_message, message:direct]}
  web:
    description: n
    event_patterns: [system:stats]
    claude_tools: [WebFetch]
    system_prompt: Fetch pages from the internet with care.
    inject: relevant
  sums:
    description: Add numbers
    event_patterns: []
    system_prompt: Add and multiply numbers with the calculator.
    inject: relevant
  quiet: {description: q, event_patterns: [], system_prompt: Never said., inject: never}
  tuned:
    description: c
    event_patterns: []
    config_schema:
      type: object
      properties: {hosts: {type: array, items: {type: string}}, depth: {type: integer}}
      additionalProperties: false
    mounts: [{path: /docs/guide.md, content: "# Guide"}]
    skills: [reviewing]
  soon: {description: s, event_patterns: [], status: coming_soon, system_prompt: Not yet.}
  old: {description: o, event_patterns: [], status: deprecated, system_prompt: Still here.}
  dead: {description: d, event_patterns: [], status: retired, system_prompt: Gone.}
  spawn:
    description: s
    event_patterns: [agent:spawn, agent:terminate, agent:update, agent:list, agent:status]
"""


def files(**more: str) -> Files:
    own = {"coder": "capabilities: [web, read]\nprompt: You write code.\n"}
    return texts(CATALOGUE, **PROFILES | own | more)


@pytest.fixture
async def family() -> Family:
    found = Family(files())
    await found.client("ann", "boss")
    return found


async def run(family: Family, who: str, **asked: Any) -> Any:
    return await family.ask(who, "agent:runtime", asked)


async def test_additions_come_in_order_each_in_its_fence_and_then_the_own_prompt(
    family: Family,
) -> None:
    more = {"capabilities": ["old", "write", "talk"], "system_prompt": "You are Bob."}
    await family.spawn("operator", "bob", "coder", **more)
    found = await run(family, "bob")
    assert found["system_prompt"] == (
        '<capability id="old">\nStill here.\n</capability>\n\n'
        '<capability id="read">\nRead first.\n</capability>\n\n'
        '<capability id="write">\nWrite later.\n</capability>\n\n'
        "You write code.\n\nYou are Bob."
    )
    assert [one["id"] for one in found["injected"]] == ["old", "read", "write"]
    assert found["limits"] == {"max_calls_per_minute": 30}
    assert found["model_tools"] == ["WebFetch"]


async def test_dependencies_come_before_what_needs_them_and_are_told_apart(family: Family) -> None:
    await family.spawn("operator", "bob", capabilities=["talk", "write", "sums"])
    found = await run(family, "bob")
    assert found["resolved_ids"] == ["base", "talk", "read", "write", "sums"]
    assert found["user_selected"] == ["talk", "write", "sums"]
    assert found["added_as_dependencies"] == ["read"]
    assert found["always_included"] == ["base"]


async def test_the_order_of_the_list_is_the_priority_and_survives_a_restart(family: Family) -> None:
    listed = ["sums", {"ref": "tuned", "config": {"depth": 2}}, "read", "old"]
    await family.spawn("operator", "bob", capabilities=listed, name="Bob")
    (record,) = await family.store.agent_list()
    assert agent_of(record).spec.chosen == listed
    assert (await run(family, "bob"))["user_selected"] == ["sums", "tuned", "read", "old"]
    update = {"agent_id": "bob", "capabilities": ["old", "sums"]}
    assert (await family.ask("operator", "agent:update", update))["capabilities"] == ["old", "sums"]
    status = await family.ask("operator", "agent:status", {"agent_id": "bob"})
    shown = {name: status[name] for name in ("name", "status", "capabilities", "switched_off")}
    assert shown == {
        "name": "Bob",
        "status": "active",
        "capabilities": ["old", "sums"],
        "switched_off": [],
    }


async def test_what_is_relevant_is_injected_when_it_is_asked_for(family: Family) -> None:
    await family.spawn("operator", "bob", capabilities=["web", "sums", "quiet", "read"])
    found = await run(family, "bob")
    assert found["skipped"] == [
        {"id": "web", "reason": "no_query"},
        {"id": "sums", "reason": "no_query"},
        {"id": "quiet", "reason": "never"},
    ]
    asked = await run(family, "bob", query="multiply these numbers")
    assert [one["id"] for one in asked["injected"]] == ["sums", "read"]
    assert {"id": "web", "reason": "not_relevant"} in asked["skipped"]
    spoken = await run(
        family, "bob", messages=["hello", {"role": "user", "content": "fetch a page"}]
    )
    assert [one["id"] for one in spoken["injected"]] == ["web", "read"]


async def test_tools_files_configuration_and_tokens_are_told(family: Family) -> None:
    listed = ["write", {"ref": "tuned", "config": {"hosts": ["a"]}}]
    await family.spawn("operator", "bob", capabilities=listed)
    found = await run(family, "bob")
    assert [one["name"] for one in found["tools"]] == ["state_get", "state_list", "state_set"]
    assert found["config"] == {"tuned": {"hosts": ["a"]}}
    assert found["mounts"] == [{"capability": "tuned", "path": "/docs/guide.md", "read_only": True}]
    assert found["skills"] == [{"capability": "tuned", "skill": "reviewing"}]
    tokens = found["tokens"]
    assert tokens["total"] == tokens["system_prompt"] + tokens["tools"] > 0
    assert (await run(family, "bob"))["tokens"] == tokens


async def test_statuses_are_told_and_what_cannot_be_granted_is_not(family: Family) -> None:
    told = await family.spawn("operator", "bob", capabilities=["soon", "old", "dead", "read"])
    codes = [(one["capability"], one["code"]) for one in told["warnings"]]
    assert codes == [("soon", "coming_soon"), ("old", "deprecated"), ("dead", "retired")]
    found = await run(family, "bob")
    assert found["user_selected"] == ["old", "read"]
    assert "Not yet" not in found["system_prompt"]
    assert {one["code"] for one in found["warnings"]} == {"coming_soon", "deprecated", "retired"}


async def test_what_somebody_above_took_away_is_not_talked_about(family: Family) -> None:
    await family.spawn("operator", "lead", "boss")
    await family.spawn("lead", "kid", capabilities=["write"])
    assert "Write later" in (await run(family, "kid"))["system_prompt"]
    await family.ask("operator", "agent:update", {"agent_id": "lead", "profile": "mute"})
    assert (await run(family, "kid"))["system_prompt"] == (
        '<capability id="read">\nRead first.\n</capability>'
    )


async def test_an_archived_agent_and_all_below_it_hold_nothing_until_it_is_active(
    family: Family,
) -> None:
    await family.spawn("operator", "lead", "boss")
    await family.spawn("lead", "kid", capabilities=["write"])
    told = await family.ask("operator", "agent:update", {"agent_id": "lead", "status": "archived"})
    assert told["allowed_events"] == []
    assert not await family.allowed("lead", "state:get")
    assert not await family.allowed("kid", "state:get")
    listed = (await family.ask("operator", "agent:list"))["items"]
    assert {one["agent_id"]: one["status"] for one in listed}["lead"] == "archived"
    await family.ask("operator", "agent:update", {"agent_id": "lead", "status": "active"})
    assert await family.allowed("kid", "state:set")


@pytest.mark.parametrize(
    ("listed", "path"),
    [
        (["read", "wrte"], "$.capabilities[1]"),
        ({"wrte": True}, "$.capabilities.wrte"),
        (["read", "write", "read"], "$.capabilities[2]"),
        ([{"ref": "tuned", "config": {"depth": "x"}}], "$.capabilities[0].config.depth"),
        ([{"ref": "tuned", "config": {"hosts": ["a", 1]}}], "$.capabilities[0].config.hosts[1]"),
        ([{"ref": "tuned", "config": {"other": 1}}], "$.capabilities[0].config"),
        ([{"ref": "tuned", "conf": {}}], "$.capabilities[0].conf"),
    ],
)
async def test_a_list_that_cannot_be_is_refused_with_its_place(
    family: Family, listed: Any, path: str
) -> None:
    code, details = await family.refused("operator", "agent:spawn", {"capabilities": listed})
    assert (code, details["path"]) == ("invalid_data", path)


async def test_an_unknown_capability_gets_a_suggestion_of_what_the_caller_sees(
    family: Family,
) -> None:
    async def hint(who: str) -> str:
        answer = await family.answer(who, "agent:spawn", {"capabilities": ["wrte"]})
        assert answer.error is not None
        return str(answer.error.hint)

    assert await hint("operator") == "did you mean 'write'?"
    await family.client("zoe", "mute")
    assert "write" not in await hint("zoe")


async def test_nobody_asks_about_others_and_the_operator_names_an_agent(family: Family) -> None:
    await family.client("zoe", "helper")
    code, _ = await family.refused("zoe", "agent:runtime", {"agent_id": "ann"})
    assert code == "unknown_agent"
    assert (await family.refused("operator", "agent:runtime"))[0] == "invalid_data"
    assert (await run(family, "operator", agent_id="zoe"))["user_selected"] == ["read", "talk"]


async def test_a_configuration_that_fits_no_more_is_left_out_and_told(family: Family) -> None:
    listed = [{"ref": "tuned", "config": {"depth": 2}}]
    await family.spawn("operator", "bob", capabilities=listed)
    family.files = texts(
        CATALOGUE.replace("depth: {type: integer}", "depth: {type: string}"), **PROFILES
    )
    await family.ask("operator", "config:reload")
    found = await run(family, "bob")
    assert found["config"] == {}
    assert [one["code"] for one in found["warnings"]] == ["invalid_config"]


@given(
    st.lists(
        st.sampled_from(["<", "</", "capability", "CAPABILITY", ">", " ", "\u200b", "ﬁ", "\uff1c",
                         "x", "\u0441\u0430pability", "cap", "ability", ' id="a"', "\n", "İ"])
    ).map("".join)
)  # fmt: skip
def test_no_text_closes_its_fence_or_opens_another(text: str) -> None:
    found = fenced_capability("a", text)
    inside = found.removeprefix('<capability id="a">\n').removesuffix("\n</capability>")
    assert len(inside) == len(text)
    plain = "".join(sign for sign in inside.casefold() if sign.isalpha() or sign in "<\uff1c")
    assert "<capability" not in plain
    assert "\uff1ccapability" not in plain


def test_a_text_without_such_a_tag_is_left_as_it_is() -> None:
    text = "Use <file> for a capability; a < b, c > d."
    assert fenced_capability("a", text) == f'<capability id="a">\n{text}\n</capability>'


NEEDY = """
  needy:
    description: Has a level
    event_patterns: [state:get]
    config_schema: {type: object, required: [level], properties: {level: {type: integer}}}
  plain: {description: Has none, event_patterns: [state:list]}
"""


@pytest.mark.parametrize(
    ("listed", "path"),
    [
        pytest.param(["plain", "needy"], "$.capabilities[1]", id="named-alone"),
        pytest.param({"needy": True}, "$.capabilities.needy", id="a-flag"),
        pytest.param([{"ref": "needy", "config": {}}], "$.capabilities[0]", id="empty"),
        pytest.param(
            [{"ref": "plain", "config": {"x": 1}}], "$.capabilities[0].config", id="no-schema"
        ),
    ],
)
async def test_what_a_capability_needs_must_be_given_at_spawn_and_at_update(
    listed: Any, path: str
) -> None:
    family = needy_family()
    await family.spawn("operator", "kid", "free")
    for event, data in (("agent:spawn", {}), ("agent:update", {"agent_id": "kid"})):
        asked = data | {"capabilities": listed}
        code, details = await family.refused("operator", event, asked)
        assert (code, details["path"]) == ("invalid_data", path)


async def test_the_profile_of_an_agent_may_have_given_it() -> None:
    family = needy_family()
    await family.spawn("operator", "kid", "set", capabilities=["plain", "needy"])
    assert (await run(family, "kid"))["config"] == {"needy": {"level": 3}}
    await family.ask("operator", "agent:update", {"agent_id": "kid", "capabilities": ["needy"]})
    changed = {"agent_id": "kid", "profile": "free"}
    code, details = await family.refused("operator", "agent:update", changed)
    assert (code, details["path"]) == ("invalid_data", "$.capabilities")
    await family.ask("operator", "agent:update", {"agent_id": "kid", "status": "archived"})


async def test_one_that_was_made_at_run_time_is_no_exception() -> None:
    family = needy_family()
    schema = {"type": "object", "required": ["level"]}
    made = {"id": "mine", "description": "m", "event_patterns": ["state:get"]}
    await family.ask("operator", "capability:create", made | {"config_schema": schema})
    code, details = await family.refused("operator", "agent:spawn", {"capabilities": ["mine"]})
    assert (code, details["path"]) == ("invalid_data", "$.capabilities[0]")
    given = [{"ref": "mine", "config": {"level": 1}}]
    await family.spawn("operator", "kid", capabilities=given)


def needy_family() -> Family:
    profiles = {
        "set": "capabilities: [{ref: needy, config: {level: 3}}]",
        "free": "capabilities: [plain]",
    }
    return Family(texts(CATALOGUE + NEEDY, **profiles))
