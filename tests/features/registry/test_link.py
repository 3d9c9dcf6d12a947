"""What a mission is given: all that it needs, nothing else, and never a part of what is broken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.features.registry.entry import Entry, HealthState
from remit.features.registry.link import MOST_SKILLS, Gap, Linked, link

NODES = [f"tool:{letter}" for letter in "abcdefghij"]
ABSENT = ["tool:gone", "tool:lost"]
STATES: list[HealthState] = ["unverified", "green", "flaky", "pending", "red", "unavailable"]


def tool(id_: str, *dependencies: str, capability: str = "") -> Entry:
    return Entry(
        id=id_, capability=capability or id_, layer="composed", dependencies=tuple(dependencies)
    )


def skill(id_: str, **more: object) -> Entry:
    return Entry(id=id_, capability=id_, layer="skill", **more)  # type: ignore[arg-type]


def known(*entries: Entry) -> dict[str, Entry]:
    return {one.id: one for one in entries}


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, Entry]:
    ids = draw(st.lists(st.sampled_from(NODES), min_size=1, unique=True))
    needed = st.lists(st.sampled_from(NODES + ABSENT), max_size=3)
    return {id_: tool(id_, *draw(needed)) for id_ in ids}


NEEDS = st.lists(st.sampled_from(NODES + ABSENT), min_size=1, max_size=6)
HEALTH = st.dictionaries(st.sampled_from(NODES), st.sampled_from(STATES))


def linked(needs: list[str], entries: dict[str, Entry], health: dict[str, HealthState]) -> Linked:
    return link(needs, entries, health=lambda id_: health.get(id_, "unverified"))


@given(graphs(), NEEDS, HEALTH)
def test_a_link_is_closed_ordered_and_a_part_of_what_was_given(
    entries: dict[str, Entry], needs: list[str], health: dict[str, HealthState]
) -> None:
    found = linked(needs, entries, health)
    assert sorted((*found.visible, *found.hidden)) == sorted(found.order)
    assert set(found.order) <= entries.keys()
    assert set(found.visible) <= set(needs)
    before: set[str] = set()
    for id_ in found.order:  # each stands behind all that it needs, so there is no cycle either
        assert before.issuperset(entries[id_].dependencies)
        assert health.get(id_) not in ("red", "unavailable")
        before.add(id_)


@given(graphs(), NEEDS, HEALTH)
def test_no_hidden_tool_could_be_left_out(
    entries: dict[str, Entry], needs: list[str], health: dict[str, HealthState]
) -> None:
    found = linked(needs, entries, health)
    for left_out in found.hidden:
        others = set(found.order) - {left_out}
        assert any(left_out in entries[id_].dependencies for id_ in others)
        fewer = {id_: one for id_, one in entries.items() if id_ != left_out}
        assert set(linked(needs, fewer, health).visible) < set(found.visible)


@given(graphs(), NEEDS, HEALTH, st.randoms())
def test_a_link_is_the_same_for_any_order_of_needs(
    entries: dict[str, Entry], needs: list[str], health: dict[str, HealthState], random: object
) -> None:
    found = linked(needs, entries, health)
    shuffled = list(needs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    turned = dict(reversed(entries.items()))
    assert linked(shuffled, turned, health) == found


@given(graphs(), NEEDS, HEALTH)
def test_every_need_is_linked_or_something_is_said_to_stand_in_its_way(
    entries: dict[str, Entry], needs: list[str], health: dict[str, HealthState]
) -> None:
    found = linked(needs, entries, health)
    if set(found.visible) != set(needs):
        assert found.missing or found.unhealthy or found.cycles


@pytest.mark.parametrize("length", [1, 2, 20])
def test_a_cycle_is_named_from_its_smallest_id_on_and_nothing_of_it_is_linked(length: int) -> None:
    ids = [f"tool:{at:02}" for at in range(length)]
    entries = known(*(tool(id_, ids[(at + 1) % length]) for at, id_ in enumerate(ids)))
    entries |= known(tool("tool:user", ids[-1]), tool("tool:other"))
    found = link(["tool:user", "tool:other"], entries)
    assert found.cycles == (tuple(ids),)
    assert found.order == ("tool:other",)


def test_a_missing_dependency_takes_out_all_that_need_it_and_says_who() -> None:
    entries = known(
        tool("tool:report", "tool:parse"), tool("tool:parse", "tool:split"), tool("tool:clock")
    )
    found = link(["tool:report", "tool:clock"], entries)
    assert found.missing == (Gap("tool:split", "missing", "tool:parse"),)
    assert found.order == ("tool:clock",)


def test_a_chain_of_ten_thousand_is_linked() -> None:
    chain = [tool(f"tool:{at}", f"tool:{at + 1}") for at in range(10_000)]
    found = link(["tool:0"], known(*chain, tool("tool:10000")))
    assert (found.visible, len(found.hidden)) == (("tool:0",), 10_000)
    assert found.order[0] == "tool:10000"


def test_a_flaky_tool_is_linked_and_marked_for_a_second_try() -> None:
    found = linked(["tool:a"], known(tool("tool:a")), {"tool:a": "flaky"})
    assert (found.visible, found.retry) == (("tool:a",), ("tool:a",))


PARSE = tool("tool:parse_eu", "tool:split", capability="parse_csv")
SPLIT = tool("tool:split")


def test_skills_of_the_tools_come_first_then_those_of_the_context_each_once() -> None:
    skills = [
        skill("skill:csv", applies_to=("parse_csv",), tags=("eu",)),
        skill("skill:salary", tags=("salary",)),
        skill("skill:split", applies_to=("tool:split",)),
        skill("skill:baking", tags=("bread",)),
    ]
    found = link(["tool:parse_eu"], known(PARSE, SPLIT), skills=skills, tags=("eu", "salary"))
    assert [one.id for one in found.skills] == ["skill:csv", "skill:split", "skill:salary"]
    assert (found.skills[0].tools, found.skills[0].tags) == (("tool:parse_eu",), ("eu",))


def test_a_model_is_given_its_variant_and_nothing_that_fails_with_it() -> None:
    skills = [
        skill("skill:csv", applies_to=("parse_csv",), variants={"small": "skill:csv-short"}),
        skill("skill:csv-short"),
        skill("skill:long", applies_to=("parse_csv",)),
    ]
    entries = known(PARSE, SPLIT)
    found = link(
        ["tool:parse_eu"],
        entries,
        skills=skills,
        model="small",
        score=lambda id_: None if id_ == "skill:long" else 0.5,
    )
    assert [(one.id, one.variant_of) for one in found.skills] == [("skill:csv-short", "skill:csv")]
    usual = link(["tool:parse_eu"], entries, skills=skills)
    assert [one.id for one in usual.skills] == ["skill:csv", "skill:long"]


def test_two_linked_skills_that_contradict_each_other_are_reported_once() -> None:
    skills = [
        skill("skill:a", tags=("eu",), conflicts_with=("skill:b", "skill:away", "skill:a")),
        skill("skill:b", tags=("eu",), conflicts_with=("skill:a",)),
        skill("skill:away", tags=("us",)),
    ]
    assert link([], {}, skills=skills, tags=("eu",)).conflicts == (("skill:a", "skill:b"),)


def test_a_mission_has_an_end_of_skills_and_names_the_rest() -> None:
    skills = [skill(f"skill:{at:03}", tags=("eu",)) for at in range(MOST_SKILLS + 3)]
    found = link([], {}, skills=reversed(skills), tags=("eu",))
    assert [one.id for one in found.skills] == [one.id for one in skills[:MOST_SKILLS]]
    assert found.more_skills == tuple(one.id for one in skills[MOST_SKILLS:])
