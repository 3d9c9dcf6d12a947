"""Missions from their needs to their end: models, contexts, sessions, and what outlives what."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.family import Family
from tests.features.registry.equipment import (
    Counts,
    linked,
    put_skills,
    registry,
    registry_family,
    skill,
    visible,
)

from remit.features.registry.resolve import Rate
from remit.kernel.authority.session_manager import MAX_OPEN

IN_PARTS = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
async def family() -> Family:
    return await registry_family()


async def register(family: Family, id_: str, **said: Any) -> None:
    kind = id_.partition(":")[0]
    await family.ask("operator", f"{kind}:register", {"id": id_} | said)


def skills_of(answer: dict[str, Any]) -> list[str]:
    return [one["id"] for one in answer["skills"]]


# ---- needs ----

NAMES = ["state:set", "state:get", "state:list", "tool:state:set", "kex:gone", "bake bread"]


def in_two_orders(needs: list[str]) -> st.SearchStrategy[tuple[list[str], list[str]]]:
    return st.tuples(st.just(needs), st.permutations(needs))


@IN_PARTS
@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6).flatmap(in_two_orders))
async def test_what_is_linked_does_not_depend_on_the_order_of_the_needs(
    family: Family, needs: tuple[list[str], list[str]]
) -> None:
    first = await linked(family, "planner", *needs[0])
    second = await linked(family, "planner", *needs[1])
    for part in ("tools", "skills", "tokens", "complete", "skill_prompt"):
        assert first[part] == second[part]


async def test_a_need_that_is_told_twice_is_one_need(family: Family) -> None:
    found = await linked(family, "planner", "state:get", " state:get ", "tool:state:get")
    assert [one["need"] for one in found["needs"]] == ["state:get", "tool:state:get"]
    assert visible(found) == ["tool:state:get"]


@pytest.mark.parametrize(
    "need",
    [
        "hello, how are you?",
        "book a flight to Paris",
        "https://example.org/state",
        pytest.param("\u202e", id="invisible"),
        "給与を計算する",
        "a" * 1_000,
    ],
)
async def test_what_nothing_fits_is_missing(family: Family, need: str) -> None:
    found = await linked(family, "planner", need)
    assert visible(found) == []
    assert [one["work"] for one in found["phase_0"]] == ["smith"]


async def test_a_name_that_is_nearly_right_is_hinted_at_and_not_taken(family: Family) -> None:
    found = await linked(family, "planner", "state:sett")
    assert visible(found) == []
    assert "state:set" in found["missing"][0]["hint"]


# ---- choices ----


async def test_the_tags_of_a_mission_are_the_same_in_any_case(family: Family) -> None:
    for id_ in ("tool:state:get", "tool:state:list"):
        await register(family, id_, capability="look_up")
    counts = registry(family).trials = Counts()
    counts.rates = {("tool:state:list", "#straße"): Rate(0.9, 9)}
    counts.rates |= {("tool:state:list", "#strasse"): Rate(0.9, 9)}
    for spelled in ("Straße", "STRASSE", " strasse "):
        found = await linked(family, "planner", "look_up", tags=[spelled])
        assert visible(found) == ["tool:state:list"]


async def test_a_planner_that_explores_is_given_the_less_tried_one(family: Family) -> None:
    for id_ in ("tool:state:get", "tool:state:list"):
        await register(family, id_, capability="look_up")
    counts = registry(family).trials = Counts()
    counts.rates = {("tool:state:get", ""): Rate(0.52, 40)}
    assert visible(await linked(family, "planner", "look_up")) == ["tool:state:get"]
    found = await linked(family, "planner", "look_up", exploration=5)
    assert visible(found) == ["tool:state:list"]


async def test_where_the_best_one_is_broken_the_next_one_is_taken(family: Family) -> None:
    for id_ in ("tool:state:get", "tool:state:list"):
        await register(family, id_, capability="look_up")
    mark = {"id": "tool:state:get", "healthy": False}
    await family.ask("operator", "registry:mark", mark)
    found = await linked(family, "planner", "look_up")
    assert (visible(found), found["complete"]) == (["tool:state:list"], True)
    told = await family.ask("planner", "tool:resolve", {"capability": "look_up"})
    assert [(one["id"], one["state"]) for one in told["excluded"]] == [("tool:state:get", "red")]


async def test_of_equals_the_one_that_has_all_that_it_needs_is_taken(family: Family) -> None:
    await register(family, "tool:state:get", capability="look_up", dependencies=["tool:state:set"])
    await register(family, "tool:state:list", capability="look_up")
    assert visible(await linked(family, "planner", "look_up")) == ["tool:state:get"]
    await family.ask("operator", "registry:mark", {"id": "tool:state:set", "healthy": False})
    assert visible(await linked(family, "planner", "look_up")) == ["tool:state:list"]


async def test_tools_that_need_each_other_are_named_and_not_linked(family: Family) -> None:
    await register(family, "tool:state:get", dependencies=["tool:state:list"])
    await register(family, "tool:state:list", dependencies=["tool:state:get"])
    found = await linked(family, "planner", "state:get", "state:set")
    assert found["cycles"] == [["tool:state:get", "tool:state:list"]]
    assert visible(found) == ["tool:state:set"]
    assert found["phase_0"][0]["work"] == "repair"


# ---- skills ----


async def test_a_skill_that_fails_with_a_model_is_not_given_to_it(family: Family) -> None:
    put_skills(family, skill("vat", tags=("eu",)), skill("vat-short", tags=("eu",)))
    counts = registry(family).trials = Counts()
    counts.rates = {("skill:vat", "@haiku"): Rate(0.3, 8)}
    found = await linked(family, "planner", "state:get", tags=["eu"], model="Haiku")
    assert skills_of(found) == ["skill:vat-short"]
    found = await linked(family, "planner", "state:get", tags=["eu"], model="opus")
    assert skills_of(found) == ["skill:vat", "skill:vat-short"]
    resolved = await family.ask("planner", "skill:resolve", {"tags": ["eu"], "model": "haiku"})
    assert [one["id"] for one in resolved["choices"]] == ["skill:vat-short"]


async def test_a_model_with_a_variant_is_given_that(family: Family) -> None:
    put_skills(family, skill("vat", tags=("eu",)), skill("small"))
    await register(family, "skill:vat", variants={"haiku": "skill:small"})
    found = await linked(family, "planner", "state:get", tags=["eu"], model="haiku")
    assert [(one["id"], one["variant_of"]) for one in found["skills"]] == [
        ("skill:small", "skill:vat")
    ]


async def test_skills_that_contradict_each_other_are_both_given_and_reported(
    family: Family,
) -> None:
    put_skills(family, skill("round-up", tags=("eu",)), skill("round-down", tags=("eu",)))
    await register(family, "skill:round-up", conflicts_with=["skill:round-down"])
    found = await linked(family, "planner", "state:get", tags=["eu"])
    assert found["conflicts"] == [["skill:round-down", "skill:round-up"]]
    assert len(found["skills"]) == 2


async def test_a_skill_of_somebody_else_is_neither_given_nor_told_of(
    family: Family, tmp_path: Path
) -> None:
    put_skills(
        family,
        skill("secret", "The code.", folder=tmp_path, tags=("eu",), capabilities=("config_admin",)),
    )
    found = await linked(family, "planner", "state:get", tags=["eu"])
    assert "secret" not in repr(found)
    assert "secret" not in repr(await family.ask("planner", "registry:health"))
    assert "secret" not in repr(await family.ask("planner", "registry:search", {"tags": ["eu"]}))
    seen = await linked(family, "operator", "state:get", tags=["eu"])
    assert skills_of(seen) == ["skill:secret"]


# ---- sessions ----


async def test_inside_of_a_session_a_link_is_a_part_of_what_it_leaves(family: Family) -> None:
    asked = {"session": "calm", "allowed_tools": ["link:mission", "state:get"]}
    await family.ask("planner", "session:open", asked)
    needs = {"needs": ["state:get", "state:set"]}
    planner = family.principal("planner")
    answer = await family.dispatcher.dispatch(planner, "link:mission", needs, session="calm")
    assert answer.error is None
    assert visible(answer.data) == ["tool:state:get"]


async def test_a_mission_ends_with_its_owner(family: Family) -> None:
    await family.spawn("operator", "lead", "coordinator")
    found = await linked(family, "lead", "state:get", bind=True)
    await family.spawn("lead", "worker", "observer", session=found["session"])
    await family.ask("operator", "agent:terminate", {"agent_id": "lead"})
    assert family.authority.fleet.sessions.of("lead") == []
    await family.spawn("operator", "lead", "coordinator")
    refused = await family.refused("lead", "mission:end", {"mission": found["mission"]})
    assert refused[0] == "not_found"


async def test_ending_a_mission_twice_does_no_harm(family: Family) -> None:
    found = await linked(family, "planner", "state:get", bind=True)
    for _ in range(2):
        ended = await family.ask("planner", "mission:end", {"mission": found["mission"]})
        assert ended == {"mission": found["mission"], "session": found["session"], "agents": []}


async def test_more_missions_than_sessions_are_refused_and_then_there_is_room_again(
    family: Family,
) -> None:
    bound = [await linked(family, "planner", "state:get", bind=True) for _ in range(MAX_OPEN)]
    assert len({one["session"] for one in bound}) == MAX_OPEN
    asked = {"needs": ["state:get"], "bind": True}
    assert (await family.refused("planner", "link:mission", asked))[0] == "limit_exceeded"
    await family.ask("planner", "mission:end", {"mission": bound[7]["mission"]})
    again = await linked(family, "planner", "state:get", bind=True)
    assert again["session"] == bound[7]["session"]


async def test_a_worker_cannot_link_itself_out_of_its_mission(family: Family) -> None:
    asked = {"session": "calm", "allowed_tools": ["link:mission", "state:get"]}
    await family.ask("planner", "session:open", asked)
    await family.spawn("planner", "worker", "coordinator", session="calm")
    wider = await linked(family, "worker", "state:set", "state:get", bind=True)
    assert visible(wider) == ["tool:state:get"]
    left = family.authority.grant(family.principal("worker")).events
    assert left == {"link:mission", "state:get"}
