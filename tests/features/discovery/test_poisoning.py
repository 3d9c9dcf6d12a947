"""Hostile teachers: whatever one of them does, what others find stays as it is."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes import texts
from tests.family import Family
from tests.features.discovery.catalogues import OFFICE, VECTORS, grant

from remit.features.discovery.embedding import VectorCache
from remit.features.discovery.engine import Engine
from remit.features.discovery.index import Indexer
from remit.features.discovery.learning.experience import Experience
from remit.features.discovery.questions import Options
from remit.text.counting import make_counter

THREE = ("ann", "bob", "eve")
QUERIES = (
    "keep a value for later",
    "send a message to another agent",
    "spawn a helper under a profile",
    "zap the frobnicator into orbit",
    "steer the zeppelin north",
    "delete",
)


CATALOGUE = """
  work:
    description: w
    always_included: true
    event_patterns: ["state:*", "message:*", "agent:*", "discovery:*", "file:*", "session:*"]
"""
PROFILES = {"user": "capabilities: []\n", "teacher": "capabilities: []\ntrust: true\n"}


@pytest.fixture
async def family() -> Family:
    found = Family(texts(CATALOGUE, **PROFILES))
    found.keyring.on_revoke = found.kernel.ended
    for name in (*THREE, "dan", "mallory"):
        await found.client(name, "user")
    return found


async def _top(family: Family, who: str = "dan") -> list[list[tuple[str, float]]]:
    """What somebody finds, order and relevance included, once all that was taught counts."""
    await family.ask("operator", "discovery:refresh")
    answers = [await family.ask(who, "discovery:discover", {"query": one}) for one in QUERIES]
    return [[(hit["id"], hit["relevance"]) for hit in one["capabilities"]] for one in answers]


async def _teach(family: Family, who: str, event: str, query: str, *, worked: bool = True) -> None:
    data = {"id": event, "worked": worked, "query": query}
    await family.ask(who, "discovery:feedback", data)


async def test_a_hostile_teacher_and_its_fifty_children_move_nobody_elses_ranks(
    family: Family,
) -> None:
    for who in THREE:
        await _teach(family, who, "state:set", QUERIES[3])
    await _teach(family, "ann", "message:publish", QUERIES[4])
    before = await _top(family)
    assert before[3][0][0] == "tool:state:set"
    assert before[4] == []
    kin = [f"m{at}" for at in range(50)]
    for name in kin:
        await family.spawn("mallory", name, "user")
    events = ("state:delete", "state:set", "agent:terminate", "message:publish")
    for at in range(10_000):
        query = f"{QUERIES[at % len(QUERIES)]} {at if at % 3 else ''}"
        who = (["mallory", *kin])[at % 51]
        await _teach(family, who, events[at % 4], query, worked=at % 5 > 0)
    assert await _top(family) == before
    mine = await family.ask("m3", "discovery:discover", {"query": QUERIES[4]})
    assert mine["fits"]  # its own ranks are its own to spoil


async def test_questions_and_calls_of_one_caller_move_nobody_elses_ranks(family: Family) -> None:
    before = await _top(family)
    for at in range(200):
        asked = {"query": f"{QUERIES[at % 6]} state delete"}
        await family.ask("mallory", "discovery:discover", asked)
        await family.answer("mallory", "state:delete", {"key": "a"})
        await family.answer("mallory", "state:set", {"key": "a", "value": 1})
    assert (await family.ask("operator", "discovery:examples"))["total"] > 0
    assert await _top(family) == before


async def test_own_lessons_leak_through_no_kept_answer(family: Family) -> None:
    before = await _top(family)
    await _teach(family, "mallory", "state:delete", QUERIES[4])
    for _ in range(2):
        mine = await family.ask("mallory", "discovery:discover", {"query": QUERIES[4]})
        assert mine["capabilities"][0]["id"] == "tool:state:delete"
        theirs = await family.ask("dan", "discovery:discover", {"query": QUERIES[4]})
        assert theirs["capabilities"] == []
    assert await _top(family) == before
    look = {"query": QUERIES[4], "agent": "mallory"}
    assert (await family.ask("operator", "discovery:discover", look))["capabilities"] == []


async def test_agents_that_are_made_again_and_again_are_one_voice_at_a_time(
    family: Family,
) -> None:
    before = await _top(family)
    for at in range(5):
        await family.spawn("mallory", "child", "user")
        await _teach(family, "child", "state:delete", QUERIES[4])
        await family.spawn("mallory", f"child{at}", "user")
        await _teach(family, f"child{at}", "state:delete", QUERIES[4])
        await family.ask("mallory", "agent:terminate", {"agent_id": "child"})
    assert await _top(family) == before
    await family.spawn("mallory", "child", "user")
    assert await _top(family, "child") == before


async def test_names_of_clients_in_other_trees_are_nobodys_voice(family: Family) -> None:
    """Names of agents look like those of others, or like nothing else does."""
    before = await _top(family)
    for name in ("ann2", "bob-", "eve.x", "operator2", "dan_"):
        answer = await family.answer(
            "mallory", "agent:spawn", {"agent_id": name, "profile": "user"}
        )
        if answer.ok:
            await _teach(family, name, "state:delete", QUERIES[4])
    assert await _top(family) == before


async def test_sessions_are_no_voices(family: Family) -> None:
    before = await _top(family)
    principal = family.principal("mallory")
    for at in range(6):
        for event, data in (
            ("discovery:discover", {"query": f"{QUERIES[0]} zeppelin"}),
            ("state:set", {"key": "a", "value": 1}),
        ):
            await family.dispatcher.dispatch(principal, event, data, session=f"s{at}")
    assert await _top(family) == before


async def test_three_clients_that_agree_teach_everybody_until_one_of_them_is_revoked(
    family: Family,
) -> None:
    for who in THREE:
        assert (await _top(family))[4] == []
        await _teach(family, who, "state:set", f"please {QUERIES[4]}")
    assert (await _top(family))[4][0][0] == "tool:state:set"
    await family.ask("operator", "key:revoke", {"name": "bob"})
    assert (await _top(family))[4] == []


INDEXER = Indexer(VECTORS, VectorCache())
IDS = st.sampled_from([one.id for one in OFFICE])
WORDS = st.lists(
    st.sampled_from(["mail", "zeppelin", "invoice", "north", "city", "blue", "pills"]),
    min_size=1,
    max_size=5,
).map(" ".join)
LESSONS = st.lists(st.tuples(IDS, WORDS, st.booleans()), max_size=6)


@given(agreed=LESSONS, single=LESSONS, hostile=LESSONS, more=st.integers(1, 40), query=WORDS)
@settings(max_examples=60)
def test_one_voice_never_moves_what_is_agreed_or_said_by_one_other_alone(
    agreed: Sequence[tuple[str, str, bool]],
    single: Sequence[tuple[str, str, bool]],
    hostile: Sequence[tuple[str, str, bool]],
    more: int,
    query: str,
) -> None:
    experience = Experience(lambda: 5.0, root_of=lambda caller: caller.partition("/")[0])
    for subject, text, worked in agreed:
        for who in THREE:
            experience.reported(who, subject, worked=worked, request=text)
    # Where two more voices said something, a third one may complete it: that is the rule.
    for subject, text, worked in single:
        if subject not in {one for one, _, _ in agreed}:
            experience.reported("ann", subject, worked=worked, request=text)
    before = _found(experience, query)
    for at in range(more):
        for subject, text, worked in hostile:
            who = f"mallory/{at % 7}" if at % 7 else "mallory"
            experience.reported(who, subject, worked=worked, request=f"{text} {'x' * (at % 3)}")
    assert _found(experience, query) == before


def _found(experience: Experience, query: str) -> list[tuple[str, float]]:
    engine = Engine(INDEXER, make_counter("chars"), lambda _one: "")
    engine.put_in_force(engine.prepare(OFFICE, experience.lessons()))
    view = engine.view(grant(*(one.event for one in OFFICE if one.event)))
    found = engine.discover(view, query, Options(), experience.own("dan", query))
    return [(found.view.descriptor(hit.row).id, hit.relevance) for hit in found.hits]
