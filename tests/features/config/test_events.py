"""config:plan and config:reload: what an edit would change, and putting it in force."""

from typing import Any

import pytest
from tests.fakes import texts
from tests.family import Family, family_files

BROKEN = "capabilities: [no_such]\n"
WIDER = "capabilities: [write, talk]\n"


@pytest.fixture
async def family() -> Family:
    made = Family(family_files())
    await made.spawn("operator", "ann", "helper")
    return made


async def test_a_plan_tells_what_an_edit_gives_and_puts_nothing_in_force(family: Family) -> None:
    family.files = family_files(helper=WIDER)
    before = family.authority.catalogue.revision
    plan = await family.ask("operator", "config:plan")
    assert sorted(plan["profiles"]["helper"]["granted"]) == ["state:delete", "state:set"]
    assert plan["profiles"]["helper"]["revoked"] == ()
    assert set(plan["agents"]) == {"ann"}
    assert family.authority.catalogue.revision == before
    assert not await family.allowed("ann", "state:set")


async def test_a_reload_puts_exactly_what_was_planned_in_force(family: Family) -> None:
    family.files = family_files(helper=WIDER)
    planned = await family.ask("operator", "config:plan")
    done = await family.ask("operator", "config:reload")
    assert {key: done[key] for key in ("profiles", "agents")} == {
        key: planned[key] for key in ("profiles", "agents")
    }
    assert await family.allowed("ann", "state:set")
    after = await family.ask("operator", "config:plan")
    assert (after["profiles"], after["agents"]) == ({}, {})


async def test_a_reload_without_an_edit_is_no_new_revision(family: Family) -> None:
    before = family.authority.catalogue.revision
    await family.ask("operator", "config:reload")
    assert family.authority.catalogue.revision == before


@pytest.mark.parametrize("event", ["config:plan", "config:reload"])
async def test_broken_files_are_refused_with_their_place_and_change_nothing(
    family: Family, event: str
) -> None:
    before = family.authority.catalogue.revision
    family.files = family_files(helper=BROKEN)
    answer = await family.answer("operator", event)
    assert answer.error is not None
    (problem,) = answer.error.details["problems"]
    assert (problem["file"], problem["line"]) == ("compositions/helper.yaml", 2)
    assert family.authority.catalogue.revision == before
    assert await family.allowed("ann", "state:get")


async def test_an_edit_that_was_taken_back_ends_the_mark_of_the_broken_one(family: Family) -> None:
    good = family.files
    family.files = family_files(helper=BROKEN)
    await family.answer("operator", "config:reload")
    assert (await family.ask("operator", "system:health"))["stale"]
    family.files = good
    await family.ask("operator", "config:reload")
    assert not (await family.ask("operator", "system:health"))["stale"]


@pytest.mark.parametrize("event", ["config:plan", "config:reload", "config:changed"])
async def test_no_wildcard_gives_somebody_the_files(event: str) -> None:
    catalogue = "  all: {description: a, event_patterns: ['config:*'], always_included: true}\n"
    family = Family(texts(catalogue, wild=""))
    await family.spawn("operator", "ann", "wild")
    code, details = await family.refused("ann", event)
    assert (code, details["reason"]) == ("denied", "no_grant")


async def test_what_is_pushed_cannot_be_called(family: Family) -> None:
    data: dict[str, Any] = {"errors": [], "revision": 1}
    assert (await family.refused("operator", "config:rejected", data))[0] == "conflict"
