"""The operator lets lessons count for everybody, or never; and what is on disk after that."""

from typing import Any

import msgspec
import pytest
from tests.fakes import texts
from tests.family import Family
from tests.features.discovery.test_poisoning import CATALOGUE, PROFILES
from tests.stores import TemporaryStore

from remit.features.discovery.learning.experience import Experience
from remit.features.discovery.learning.lessons import Lesson
from remit.features.discovery.learning.store import LessonKeeper, LessonRows

ZAP = "zap the frobnicator into orbit"
LESSONS = {"kind": "lesson"}


@pytest.fixture
async def family() -> Family:
    found = Family(texts(CATALOGUE, **PROFILES))
    for name, profile in (("ann", "user"), ("dan", "user"), ("tina", "teacher")):
        await found.client(name, profile)
    return found


async def _teach(family: Family, who: str) -> None:
    data = {"id": "state:set", "worked": True, "query": ZAP}
    await family.ask(who, "discovery:feedback", data)


async def _finds(family: Family, who: str = "dan") -> bool:
    answer = await family.ask(who, "discovery:discover", {"query": ZAP})
    return "tool:state:set" in [one["id"] for one in answer["capabilities"]]


async def _listed(family: Family, **more: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await family.ask("operator", "review:list", LESSONS | more))[
        "items"
    ]
    return found


async def _decide(family: Family, decision: str) -> Any:
    items = [*await _listed(family), *await _listed(family, status="approved")]
    return await family.ask(
        "operator", "review:decide", {"id": items[0]["id"], "decision": decision}
    )


async def test_a_lesson_waits_where_it_is_asked_for_and_nowhere_else(family: Family) -> None:
    await _teach(family, "ann")
    (item,) = await _listed(family)
    assert (item["subject"], item["query"], item["by"]) == ("tool:state:set", ZAP, ["ann"])
    assert (await family.ask("operator", "review:list"))["items"] == []


async def test_an_approved_lesson_counts_for_everybody_and_a_rejection_takes_it_back(
    family: Family,
) -> None:
    await _finds(family)  # there is an index
    await _teach(family, "ann")
    assert (await _finds(family), await _finds(family, "ann")) == (False, True)
    answer = await _decide(family, "approve")
    assert (answer["status"], answer["decided_by"]) == ("approved", "operator")
    assert await _finds(family)
    (item,) = await _listed(family, status="approved")
    refused = await family.answer(
        "operator", "review:decide", {"id": item["id"], "decision": "approve"}
    )
    assert refused.error is not None
    assert refused.error.code == "conflict"
    await _decide(family, "reject")
    assert (await _finds(family), await _finds(family, "ann")) == (False, True)
    assert await _listed(family) == []


async def test_what_a_trusted_profile_teaches_needs_no_review(family: Family) -> None:
    await _teach(family, "tina")
    await family.ask("operator", "discovery:refresh")
    assert await _finds(family)
    assert await _listed(family) == []


async def test_nobody_but_the_operator_sees_or_decides_lessons(family: Family) -> None:
    await _teach(family, "ann")
    (item,) = await _listed(family)
    family.files = texts(CATALOGUE.replace('"file:*"', "review:list, review:decide"), **PROFILES)
    family.authority.put_in_force(family.authority.prepare())
    assert (await family.ask("dan", "review:list", LESSONS))["items"] == []
    answer = await family.answer("dan", "review:decide", {"id": item["id"], "decision": "approve"})
    assert answer.error is not None
    assert answer.error.code == "not_found"


async def test_a_decision_is_on_disk_before_it_is_answered(family: Family) -> None:
    await _teach(family, "ann")
    await _decide(family, "approve")
    kept = await LessonRows(family.store.database).lesson_list("default")
    kinds = sorted(msgspec.json.decode(body)["kind"] for body in kept.values())
    assert kinds == ["accepted", "example", "outcome"]


@pytest.mark.parametrize("id_", ["lesson:", "lesson:0000000000000000", "lesson:tool:state:set"])
async def test_what_was_not_learned_cannot_be_decided(family: Family, id_: str) -> None:
    answer = await family.answer("operator", "review:decide", {"id": id_, "decision": "approve"})
    assert answer.error is not None
    assert answer.error.code == "not_found"


async def test_lessons_of_the_old_form_are_taken_over_and_written_anew() -> None:
    rows = LessonRows(TemporaryStore().database)
    bodies = {
        "old": b'{"kind":"example","subject":"tool:x","text":"write letters","by":"ann"}',
        "gone": b'{"kind":"example","subject":"tool:x","text":"write poems","by":"gone"}',
        "pair": b'{"kind":"together","subject":"tool:x","text":"tool:y","by":""}',
        "bad": b"{",
    }
    await rows.lesson_write("t", bodies, [])
    experience = Experience(lambda: 0.0)
    keeper = LessonKeeper(rows, "t", experience)
    await keeper.load(lambda name: name == "ann")
    assert [(one.subject, one.text) for one in experience.examples()] == [
        ("tool:x", "write letters")
    ]
    await keeper.write()
    kept = await rows.lesson_list("t")
    new = [msgspec.json.decode(body, type=Lesson) for name, body in kept.items() if name != "bad"]
    assert [one.root for one in new] == ["ann"]
    again = Experience(lambda: 0.0)
    await LessonKeeper(rows, "t", again).load(lambda _name: True)
    assert again.examples() == experience.examples()
    assert again.take_changes() == ([], [])
