"""`max_effect` in a profile, asked for by agents: no spawn widens it, and no answer leaks by it."""

import pytest
from tests.family import Family, family_files

from remit.kernel.reload.last_good import keep, recall
from remit.policy.plan import plan

QUIET = "capabilities: [write, spawn, web]\nmax_effect: write\n"
READER = "capabilities: [write, talk]\nmax_effect: read\n"
TYPED = 'allowed_tools: ["state:*"]\nmax_effect: read\n'


@pytest.fixture
async def family() -> Family:
    made = Family(family_files(quiet=QUIET, reader=READER, typed=TYPED))
    await made.spawn("operator", "boss", "boss")
    return made


async def test_no_spawn_and_no_update_goes_above_it(family: Family) -> None:
    asked = {"additional_tools": ["state:set", "WebFetch"], "capabilities": {"write": True}}
    made = await family.spawn("operator", "kid", "reader", **asked)
    assert "state:set" not in made["allowed_events"]
    assert made["allowed_claude_tools"] == []
    told = [one["message"] for one in made["warnings"] if one["code"] == "above_max_effect"]
    assert [message.partition(" ")[0] for message in told] == ["'state:set'", "'WebFetch'"]
    await family.spawn("boss", "kiddo", "reader", additional_tools=["state:set"])
    (warning,) = (await family.spawn("boss", "kit", "reader", **asked))["warnings"][:1]
    assert (warning["code"], warning["tool"]) == ("above_max_effect", "state:set")
    await family.ask("operator", "agent:update", {"agent_id": "kid"} | asked)
    assert not await family.allowed("kid", "state:set")
    code, details = await family.refused("kid", "state:set", {"key": "a", "value": 1})
    assert (code, details["reason"]) == ("denied", "explicit_deny")


async def test_what_lies_under_an_agent_lies_under_its_ceiling(family: Family) -> None:
    await family.spawn("operator", "lead", "quiet")
    asked = {"additional_tools": ["state:delete"]}
    code, details = await family.refused("lead", "agent:spawn", asked)
    assert (code, details["excess"]) == ("exceeds_parent", ["state:delete"])
    kid = await family.spawn("lead", "kid", inherit=True)
    assert "state:set" in kid["allowed_events"]
    assert "state:delete" not in kid["allowed_events"]


async def test_an_agent_is_told_the_line_and_not_which_events_exist(family: Family) -> None:
    await family.spawn("operator", "ann", "typed")
    told = {}
    for event in ("state:set", "state:nonsense"):
        found = await family.ask("ann", "permission:explain", {"event": event})
        (rule,) = found["denied_by"]
        assert (rule["pattern"], rule["line"], rule["column"]) == ("max_effect: read", 3, 13)
        told[event] = found | {"event": "", "near_misses": []}
        refused = await family.answer("ann", event, {})
        assert refused.error is not None
        assert (refused.error.code, refused.error.details) == (
            "denied",
            {"reason": "explicit_deny", "event": event},
        )
    assert told["state:set"] == told["state:nonsense"]


async def test_nobody_lists_an_agent_for_what_is_above_it(family: Family) -> None:
    await family.spawn("operator", "ann", "reader")
    assert not await family.allowed("ann", "state:set")
    who = await family.ask("operator", "permission:who_can", {"event": "state:set"})
    assert "reader" not in who["profiles"]
    assert "ann" not in who["agents"]


async def test_what_was_made_at_run_time_goes_under_it_too(family: Family) -> None:
    made = {"id": "mine", "description": "m", "event_patterns": ["state:set", "state:get"]}
    await family.ask("operator", "capability:create", made)
    for profile, given in (("mute", {"state:set", "state:get"}), ("reader", {"state:get"})):
        name = f"kid-{profile}"
        await family.spawn("operator", name, profile, capabilities=["mine"])
        held = family.authority.grant(family.principal(name)).events
        assert held & {"state:set", "state:get"} == given
    asked = {"event": "state:set", "agent": "kid-reader"}
    found = await family.ask("operator", "permission:explain", asked)
    assert (found["allowed"], found["reason"]) == (False, "explicit_deny")
    assert [rule["pattern"] for rule in found["denied_by"]] == ["max_effect: read"]


async def test_a_raised_ceiling_is_a_widening_also_between_two_runs(family: Family) -> None:
    store = family.store
    await keep(store, family.authority.current)
    before = (await recall(store)).grants
    assert before is not None
    found = plan(before, family.authority.catalogue.grants)
    assert not found.changes
    freed = Family(
        family_files(quiet=QUIET, reader=READER.replace("read\n", "write\n"), typed=TYPED)
    )
    found = plan(before, freed.authority.catalogue.grants)
    assert found.changes["reader"].max_effect_changed == ("read", "write")
    assert found.changes["reader"].widens
