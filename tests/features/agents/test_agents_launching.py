"""Which spawned agents get a process, as far as that is settled before one starts."""

import pytest
from tests.family import Family, family_files

from remit.features.agents.delegation import wants_process


@pytest.fixture
async def family() -> Family:
    profile = "capabilities: [read, spawn]\nlauncher: claude\n"
    made = Family(family_files(starter=profile, quiet="extends: starter\nlauncher: none\n"))
    await made.client("boss", "boss")
    return made


async def test_a_profile_with_a_launcher_is_not_spawned_where_nothing_can_start_it(
    family: Family,
) -> None:
    code, details = await family.refused("boss", "agent:spawn", {"profile": "starter"})
    assert (code, details["path"]) == ("invalid_data", "$.launch")
    assert family.authority.fleet.names() == ["boss"]


async def test_nothing_is_started_where_the_profile_or_the_request_says_so(family: Family) -> None:
    assert (await family.spawn("boss", "one", "quiet"))["launched"] is False
    assert (await family.spawn("boss", "two", "starter", launch={}))["launched"] is False


async def test_who_inherits_the_rights_of_its_parent_inherits_no_process(family: Family) -> None:
    await family.spawn("boss", "kid", "starter", launch={})
    assert (await family.spawn("kid", "heir", inherit=True))["launched"] is False


async def test_who_was_spawned_without_a_process_gets_none_when_its_profile_has_one(
    family: Family,
) -> None:
    await family.spawn("boss", "kid", "helper")
    update = {"agent_id": "kid", "profile": "starter", "on_excess": "narrow"}
    await family.ask("boss", "agent:update", update)
    agent = family.authority.fleet.get("kid")
    assert agent is not None
    grant = family.authority.fleet.grant("kid", family.authority.catalogue)
    assert grant.launcher is not None
    assert not wants_process(agent.spec, grant)
