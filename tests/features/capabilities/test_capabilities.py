"""Making capabilities at run time: what is accepted, who sees it, and what follows."""

from typing import Any

import pytest
from tests.fakes import texts
from tests.family import CATALOGUE, PROFILES, Family

from remit.config.definitions.files import Files
from remit.errors import StoreError
from remit.features.capabilities.service import MAX_BY_ONE, RuntimeCapabilityRows, load_made
from remit.model.capability import MAX_VERSIONS

MORE = """
  make: {description: m, event_patterns: ["capability:*"]}
  rule: {description: c, event_patterns: [config:changed], requires: [make]}
  keys: {description: k, event_patterns: [key:add, key:revoke]}
"""


def files(more: str = "", **profiles: str) -> Files:
    own = {
        "maker": "capabilities: [write, web, make, spawn]\n",
        "narrow": "capabilities: [read, make, spawn]\n",
        "limited": "capabilities: [write, make]\nlimits: {state_prefixes: [team/]}\n",
    }
    return texts(CATALOGUE + MORE + more, **PROFILES | own | profiles)


@pytest.fixture
async def family() -> Family:
    found = Family(files())
    await found.client("ann", "maker")
    await found.client("zoe", "narrow")
    return found


def notes(**more: Any) -> dict[str, Any]:
    said = {"id": "notes", "description": "Take notes", "event_patterns": ["state:*"]}
    return said | more


async def test_an_agent_that_is_given_it_holds_what_it_says(family: Family) -> None:
    made = await family.ask("ann", "capability:create", notes(claude_tools=["WebFetch"]))
    assert (made["version"], made["author"], made["changed"]) == (1, "ann", True)
    told = await family.spawn("operator", "bob", capabilities=["notes"])
    assert {"state:get", "state:set", "state:list", "state:delete"} <= set(told["allowed_events"])
    assert told["allowed_claude_tools"] == ["WebFetch"]
    assert told["revision"] == made["revision"] == 2


async def test_it_goes_with_what_the_author_loses_and_comes_back_with_it(family: Family) -> None:
    child: dict[str, Any] = {"capabilities": ["write", "make"]}
    await family.spawn("operator", "eve", **child)
    await family.ask("eve", "capability:create", notes())
    await family.spawn("operator", "bob", capabilities=["notes"])
    assert await family.allowed("bob", "state:set")
    await family.ask("operator", "agent:update", {"agent_id": "eve", "capabilities": ["read"]})
    assert not await family.allowed("bob", "state:set")
    assert await family.allowed("bob", "state:get")
    await family.ask("operator", "agent:update", {"agent_id": "eve", "status": "archived"})
    assert not await family.allowed("bob", "state:get")
    restored = {"agent_id": "eve", "status": "active"} | child
    await family.ask("operator", "agent:update", restored)
    assert await family.allowed("bob", "state:set")
    await family.ask("operator", "agent:terminate", {"agent_id": "eve"})
    assert not await family.allowed("bob", "state:get")


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        pytest.param("event_patterns", ["key:add"], "$.event_patterns[0]", id="hidden-event"),
        pytest.param("event_patterns", ["no:event"], "$.event_patterns[0]", id="no-such-event"),
        pytest.param("event_patterns", ["key:*"], "$.event_patterns[0]", id="hidden-wildcard"),
        pytest.param("claude_tools", ["Bash"], "$.claude_tools[0]", id="model-tool"),
    ],
)
async def test_what_its_author_does_not_hold_is_refused(
    family: Family, field: str, value: list[str], path: str
) -> None:
    code, details = await family.refused("ann", "capability:create", notes(**{field: value}))
    assert (code, details) == ("exceeds_parent", {"path": path, "excess": value})


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"id": "Notes"}, "invalid_data"),
        ({"id": "n" * 39}, "invalid_data"),
        ({"name": "ä" * 20}, "too_large"),
        ({"system_prompt": "ä" * 32_769}, "too_large"),
        ({"skills": ["s"] * 17}, "invalid_data"),
        ({"event_patterns": ["*"]}, "invalid_data"),
        ({"event_patterns": ["State"]}, "invalid_data"),
        ({"requires": ["nobody"]}, "invalid_data"),
        ({"requires": ["keys"]}, "invalid_data"),
        ({"requires": ["rule"]}, "invalid_data"),
        ({"always_included": True}, "invalid_data"),
        ({"aliases": ["write"]}, "invalid_data"),
        ({"replaces": ["write"]}, "invalid_data"),
        ({"security_review_required": True}, "invalid_data"),
        ({"config_schema": {"type": "objct"}}, "invalid_data"),
        ({"config_schema": {"$ref": "#"}}, "invalid_data"),
        ({"config_schema": {"properties": {"a": {"pattern": "(?=x)y"}}}}, "invalid_data"),
        ({"mounts": [{"path": "/docs/a", "content": "x"}]}, "invalid_data"),
        ({"mounts": [{"path": "/capabilities/notes/../x", "content": "x"}]}, "invalid_data"),
        ({"mounts": [{"path": "/capabilities/notes/a", "content": "x"}] * 33}, "invalid_data"),
        ({"mounts": [{"path": "/capabilities/notes/a", "content": "x"}] * 2}, "invalid_data"),
        ({"id": "write"}, "conflict"),
    ],
)
async def test_a_definition_that_cannot_be_is_refused(
    family: Family, change: dict[str, Any], code: str
) -> None:
    assert (await family.refused("ann", "capability:create", notes(**change)))[0] == code
    assert family.authority.current.made == ()
    assert await family.store.capability_list() == {}


async def test_a_suggestion_names_only_what_the_author_may_see(family: Family) -> None:
    answer = await family.answer("zoe", "capability:create", notes(requires=["writ"]))
    assert answer.error is not None
    assert answer.error.hint == "known: base, make, read, spawn"
    answer = await family.answer("ann", "capability:create", notes(requires=["writ"]))
    assert answer.error is not None
    assert answer.error.hint == "did you mean 'write'?"


async def test_only_the_author_those_around_it_and_holders_see_it(family: Family) -> None:
    await family.ask("ann", "capability:create", notes(event_patterns=["state:get"]))
    await family.spawn("ann", "child", "narrow", on_excess="narrow", capabilities={"make": True})
    await family.spawn("operator", "bob", capabilities=["notes", "make"])

    async def sees(who: str) -> Any:
        listed = await family.ask(who, "capability:list", {})
        return next((one["origin"] for one in listed["items"] if one["id"] == "notes"), None)

    assert await sees("ann") == "user:ann"
    assert await sees("operator") == "user:ann"
    assert await sees("bob") == "user"
    assert await sees("zoe") is None
    code, _ = await family.refused("zoe", "capability:get", {"id": "notes"})
    assert code == "not_found"
    spawning = {"capabilities": ["notes"], "agent_id": "kid"}
    code, details = await family.refused("zoe", "agent:spawn", spawning)
    assert (code, details) == ("invalid_data", {"path": "$.capabilities[0]"})
    code, _ = await family.refused("zoe", "capability:update", {"id": "notes", "name": "x"})
    assert code == "not_found"
    code, _ = await family.refused("bob", "capability:remove", {"id": "notes"})
    assert code == "denied"


async def test_a_parent_gives_away_no_more_of_it_than_it_holds(family: Family) -> None:
    await family.ask("ann", "capability:create", notes())
    await family.spawn("operator", "lead", capabilities=["read", "spawn", "make", "notes"])
    await family.spawn("lead", "kid", capabilities=["notes"])
    assert await family.allowed("kid", "state:set")
    await family.ask("operator", "agent:update", {"agent_id": "lead", "capabilities": ["spawn"]})
    assert not await family.allowed("kid", "state:set")


async def test_each_change_is_a_version_and_old_ones_are_forgotten(family: Family) -> None:
    await family.ask("ann", "capability:create", notes())
    number, change = 1, {"id": "notes"}
    for number in range(2, MAX_VERSIONS + 3):
        change = {"id": "notes", "description": f"Take notes {number}"}
        told = await family.ask("ann", "capability:update", change)
        assert (told["version"], told["changed"]) == (number, True)
    again = await family.ask("ann", "capability:update", change)
    assert (again["version"], again["changed"]) == (number, False)
    found = await family.ask("ann", "capability:get", {"id": "notes"})
    assert [one["version"] for one in found["versions"]] == list(range(3, MAX_VERSIONS + 3))
    assert found["version"] == str(MAX_VERSIONS + 2)
    assert family.authority.catalogue.revision == MAX_VERSIONS + 3


async def test_an_update_keeps_what_it_does_not_name_and_minds_the_version(family: Family) -> None:
    await family.ask("ann", "capability:create", notes(system_prompt="P", tags=["a"]))
    told = {"id": "notes", "event_patterns": ["state:get"], "expect_version": 1}
    await family.ask("ann", "capability:update", told)
    found = await family.ask("ann", "capability:get", {"id": "notes"})
    assert (found["events"], found["system_prompt"], found["tags"]) == (["state:get"], "P", ["a"])
    code, details = await family.refused("ann", "capability:update", told)
    assert (code, details) == ("conflict", {"version": 2, "expected": 1})


async def test_the_hash_of_a_definition_changes_with_what_it_gives(family: Family) -> None:
    first = await family.ask("ann", "capability:create", notes())
    second = await family.ask("ann", "capability:update", {"id": "notes", "system_prompt": "P"})
    assert first["definition_hash"] != second["definition_hash"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"tags": ["b", "a", "b"]}, id="the-same-tags-in-another-order"),
        pytest.param({"event_patterns": ["state:set", "state:set"]}, id="an-event-twice"),
        pytest.param({"config_schema": {}}, id="no-schema-as-before"),
    ],
)
async def test_a_change_that_changes_nothing_makes_no_version(
    family: Family, change: dict[str, Any]
) -> None:
    made = notes(tags=["a", "b"], event_patterns=["state:set"])
    first = await family.ask("ann", "capability:create", made)
    told = await family.ask("ann", "capability:update", {"id": "notes", **change})
    assert (told["version"], told["changed"]) == (1, False)
    assert told["definition_hash"] == first["definition_hash"]


async def test_each_version_has_a_hash_of_its_own(family: Family) -> None:
    await family.ask("ann", "capability:create", notes())
    for change in ({"description": "Other"}, {"name": "N"}, {"category": "C"}, {"inject": "never"}):
        told = await family.ask("ann", "capability:update", {"id": "notes", **change})
        assert told["changed"]
    found = await family.ask("ann", "capability:get", {"id": "notes"})
    hashes = [one["definition_hash"] for one in found["versions"]]
    assert len(set(hashes)) == len(hashes) == 5


async def test_one_that_is_used_stays_and_its_users_are_named(family: Family) -> None:
    await family.ask("ann", "capability:create", notes())
    await family.spawn("ann", "mine", capabilities=["notes"])
    await family.spawn("operator", "bob", capabilities={"notes": False})
    answer = await family.answer("ann", "capability:remove", {"id": "notes"})
    assert answer.error is not None
    assert answer.error.code == "conflict"
    assert answer.error.message == "'notes' is used by the agent 'mine' and others"
    for name in ("mine", "bob"):
        await family.ask("operator", "agent:terminate", {"agent_id": name})
    assert (await family.ask("ann", "capability:remove", {"id": "notes"}))["removed"]
    assert await family.store.capability_list() == {}
    assert (await family.refused("ann", "capability:get", {"id": "notes"}))[0] == "not_found"


async def test_a_profile_may_list_it_and_then_it_stays(family: Family) -> None:
    await family.ask("ann", "capability:create", notes())
    family.files = files(reader="capabilities: [notes]\n")
    await family.ask("operator", "config:reload")
    await family.client("bob", "reader")
    assert await family.allowed("bob", "state:set")
    answer = await family.answer("operator", "capability:remove", {"id": "notes"})
    assert answer.error is not None
    assert answer.error.message == "'notes' is used by the profile 'reader'"


async def test_a_key_is_given_no_profile_whose_made_part_the_giver_lacks(family: Family) -> None:
    await family.ask("ann", "capability:create", notes())
    family.files = files(reader="capabilities: [notes]\n", giver="capabilities: [keys]\n")
    await family.ask("operator", "config:reload")
    await family.client("guy", "giver")
    data = {"name": "bob", "public_key": "x" * 40, "profile": "reader"}
    code, details = await family.refused("guy", "key:add", data)
    assert (code, details) == ("exceeds_parent", {"excess": ["reader"]})
    (row,) = (await family.store.audit_query(limit=1, outcome="failed")).items
    assert b"state:set" in row.entry.details


async def test_a_definition_in_the_files_comes_first(family: Family) -> None:
    await family.ask("ann", "capability:create", notes())
    family.files = files("  notes: {description: ours, event_patterns: [system:stats]}\n")
    outcome = await family.ask("operator", "config:reload")
    assert outcome["changed"]
    found = await family.ask("operator", "capability:get", {"id": "notes"})
    assert (found["origin"], found["events"]) == ("file", ["system:stats"])
    family.files = files()
    await family.ask("operator", "config:reload")
    found = await family.ask("operator", "capability:get", {"id": "notes"})
    assert found["origin"] == "user:ann"


async def test_one_whose_requirement_left_the_files_gives_nothing(family: Family) -> None:
    await family.ask("ann", "capability:create", notes(requires=["web"]))
    await family.spawn("operator", "bob", capabilities=["notes"])
    family.files = texts(
        (CATALOGUE + MORE).replace("  web:", "  net:"),
        **{name: text.replace("web", "net") for name, text in PROFILES.items()},
        maker="capabilities: [write, make]\n",
        narrow="capabilities: [read]\n",
    )
    await family.ask("operator", "config:reload")
    assert not await family.allowed("bob", "state:set")
    found = await family.ask("operator", "capability:get", {"id": "notes"})
    assert found["inert"] == "the files define no 'web'"


async def test_the_state_of_the_author_bounds_that_of_the_holder(family: Family) -> None:
    await family.client("tim", "limited")
    await family.ask("tim", "capability:create", notes())
    await family.spawn("operator", "bob", capabilities=["notes"])
    assert (await family.refused("bob", "state:set", {"key": "a", "value": 1}))[0] == "denied"
    await family.ask("bob", "state:set", {"key": "team/a", "value": 1})


async def test_the_operator_makes_them_too_and_they_are_seen_like_those_of_files(
    family: Family,
) -> None:
    await family.ask("operator", "capability:create", notes(claude_tools=["Bash"]))
    assert "notes" not in [
        one["id"] for one in (await family.ask("ann", "capability:list", {}))["items"]
    ]
    await family.ask("operator", "capability:update", {"id": "notes", "claude_tools": []})
    listed = (await family.ask("ann", "capability:list", {}))["items"]
    assert [one["origin"] for one in listed if one["id"] == "notes"] == ["user:operator"]


async def test_nothing_is_made_when_it_cannot_be_kept(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(_rows: RuntimeCapabilityRows, _capability: str, _body: bytes) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(RuntimeCapabilityRows, "capability_put", full)
    assert (await family.refused("ann", "capability:create", notes()))[0] == "store_unavailable"
    assert family.authority.current.made == ()
    assert family.authority.catalogue.revision == 1


async def test_an_author_has_a_limited_number_of_them(family: Family) -> None:
    for number in range(MAX_BY_ONE):
        await family.ask("ann", "capability:create", notes(id=f"n{number}"))
    assert (await family.refused("ann", "capability:create", notes()))[0] == "limit_exceeded"


async def test_a_damaged_one_is_left_out_when_the_others_are_loaded(family: Family) -> None:
    await family.ask("ann", "capability:create", notes())
    await family.store.capability_put("worse", b"\xc1")
    assert [one.id for one in await load_made(family.store)] == ["notes"]


async def test_a_rule_that_was_made_has_a_printable_place(family: Family) -> None:
    await family.ask("ann", "capability:create", notes())
    await family.spawn("operator", "bob", capabilities=["notes"])
    asked = {"event": "state:set", "agent": "bob"}
    why = await family.ask("operator", "permission:explain", asked)
    assert [(one["capability"], one["pattern"], one["file"]) for one in why["granted_by"]] == [
        ("notes", "state:*", "user:ann")
    ]


async def test_it_is_among_the_givers_of_an_event_while_its_author_holds_that(
    family: Family,
) -> None:
    await family.ask("ann", "capability:create", notes())
    asked = {"event": "state:set"}
    found = await family.ask("ann", "capability:of_event", asked)
    assert found["capabilities"] == ["notes", "write"]
    assert (await family.ask("zoe", "capability:of_event", asked))["capabilities"] == []
    await family.ask("operator", "key:revoke", {"name": "ann"})
    found = await family.ask("operator", "capability:of_event", asked)
    assert found["capabilities"] == ["write"]


async def test_nobody_makes_itself_the_holder_of_what_waits_for_a_definition(
    family: Family,
) -> None:
    # Handlers name it, and these files do not define it.
    taken = notes(id="catalogue_read")
    assert (await family.refused("operator", "capability:create", taken))[0] == "conflict"
    made = await family.ask("ann", "capability:create", taken)
    assert made["id"].startswith("catalogue_read-")


async def test_an_id_that_is_taken_out_of_sight_is_no_conflict(family: Family) -> None:
    path = "/capabilities/web/readme"
    file = {"path": path, "content": "aGk="}
    for name in ("keys", "rule"):
        made = await family.ask("zoe", "capability:create", notes(id=name))
        assert made["id"].startswith(f"{name}-")
    made = await family.ask("zoe", "capability:create", notes(id="web", mounts=[file]))
    found = await family.ask("zoe", "capability:get", {"id": made["id"]})
    assert found["files"] == [f"/capabilities/{made['id']}/readme"]
    for name in ("read", made["id"]):
        assert (await family.refused("zoe", "capability:create", notes(id=name)))[0] == "conflict"
