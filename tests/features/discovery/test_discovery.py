"""discovery:*, as callers meet it: only their own, inside the budget, better with use."""

import re
from collections.abc import Iterator, Sequence
from threading import Event
from typing import Any

import anyio
import msgspec
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fakes import Desk, built_in_handlers, starter_files, texts
from tests.features.discovery.catalogues import skill

from remit.errors import Place, Problem
from remit.features.discovery.embedding import EmbeddingError, VectorCache, np
from remit.features.discovery.engine import Engine
from remit.features.discovery.index import Indexer
from remit.features.discovery.learning.experience import Experience
from remit.features.discovery.learning.watch import Watch
from remit.features.discovery.service import Discovery, Gathered
from remit.kernel.dispatch.handler import Handler
from remit.model.descriptor import Descriptor
from remit.text.counting import make_counter

PROFILES = ("minimal", "observer", "executor", "coordinator", "administrator")


class Shelf:
    """Stands for the folders: a test puts descriptors there."""

    def __init__(self) -> None:
        self.descriptors: tuple[Descriptor, ...] = ()
        self.problems: tuple[Problem, ...] = ()

    def __call__(self) -> Gathered:
        return Gathered(self.descriptors, self.problems, ("skill:x: b instead of a",))


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def desk(shelf: Shelf) -> Desk:
    made = Desk(built_in_handlers(), starter_files())
    made.kernel.service(Discovery)._gather = shelf
    return made


def ids(answer: dict[str, Any]) -> list[str]:
    return [found["id"] for found in answer["capabilities"]]


async def test_a_request_finds_its_tool(desk: Desk) -> None:
    answer = await desk.ask("executor", "discovery:discover", {"query": "keep a value for later"})
    assert ids(answer)[0] == "tool:state:set"
    assert answer["fits"]
    assert set(answer) == {
        *("fits", "map", "summary", "detail", "capabilities", "tokens"),
        *("skipped", "total_indexed", "ranker", "revision"),
    }
    assert "state_set" in answer["summary"]
    assert answer["tokens"]["total"] < answer["tokens"]["full_dump"]


class Slow:
    """A model that takes its time: no vector comes before the gate is open."""

    name, dimensions, is_slow = "slow", 2, True

    def __init__(self) -> None:
        self.gate = Event()

    def embed(self, texts: Sequence[str]) -> Any:
        if len(texts) > 1:  # a request is one
            self.gate.wait(5)
        return np.ones((len(texts), 2), np.float32) / np.sqrt(2)

    def reads(self, words: Sequence[str]) -> bool:
        return bool(words)


async def test_a_large_catalogue_answers_by_words_before_its_vectors_are_there(
    desk: Desk,
) -> None:
    model, discovery = Slow(), desk.kernel.service(Discovery)
    discovery._make_engine = lambda: Engine(
        Indexer(model, VectorCache()), make_counter(), lambda _one: ""
    )
    query = {"query": "keep a value for later"}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(discovery.complete)
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(5):
            answer = await desk.ask("executor", "discovery:discover", query)
            assert answer["ranker"] == {"name": "slow", "vectors": "coming"}
            assert "tool:state:set" in ids(answer)
            model.gate.set()
            while answer["ranker"]["vectors"] != "ready":
                await anyio.sleep(0.01)
                answer = await desk.ask("executor", "discovery:discover", query)
        stats = await desk.ask("operator", "discovery:stats")
        assert stats["vectors"] == "ready"
        tasks.cancel_scope.cancel()


async def test_a_model_that_fails_is_asked_again_and_words_answer_meanwhile(desk: Desk) -> None:
    class Failing(Slow):
        fails = 2

        def embed(self, texts: Sequence[str]) -> Any:
            if len(texts) > 1 and self.fails:
                self.fails -= 1
                raise EmbeddingError("away")
            return np.ones((len(texts), 2), np.float32) / np.sqrt(2)

    model, discovery = Failing(), desk.kernel.service(Discovery)
    discovery._make_engine = lambda: Engine(
        Indexer(model, VectorCache()), make_counter(), lambda _one: ""
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(discovery.complete, 0.01)
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(5):
            vectors = "coming"
            while vectors != "ready":
                answer = await desk.ask("executor", "discovery:discover", {"query": "keep a value"})
                vectors = answer["ranker"]["vectors"]
                assert ids(answer)
        assert model.fails == 0
        tasks.cancel_scope.cancel()


async def test_a_question_may_say_how_much_hits_lift_each_other(desk: Desk, shelf: Shelf) -> None:
    one = skill("plan-trip", "plan a trip by train", tags=("trip", "train"))
    other = skill("book-train", "book a seat", tags=("trip", "train"))
    shelf.descriptors = (one, other, skill("walk-dog", "take a seat and walk the dog"))

    async def told(factor: float) -> dict[str, float]:
        config = {"graph_boost_factor": factor, "min_relevance": 0.0}
        asked = {"query": "plan a trip by train, book a seat", "kind": "skill", "config": config}
        answer = await desk.ask("operator", "discovery:discover", asked)
        return {hit["id"]: hit["relevance"] for hit in answer["capabilities"]}

    least, most = await told(0.0), await told(1.0)
    assert most["skill:book-train"] > least["skill:book-train"]
    refused = {"query": "a trip", "config": {"graph_boost_factor": 1.1}}
    answer = await desk.answer("operator", "discovery:discover", refused)
    assert answer.error is not None
    assert answer.error.code == "invalid_data"


async def test_a_skill_that_needs_what_cannot_be_used_now_is_unavailable(
    desk: Desk, shelf: Shelf
) -> None:
    web = skill("web-search", "search the web", available=False, unavailable_because="no key")
    summary = skill("summarize", "summarize pages of the web", required_tools=("web-search",))
    digest = skill("digest", "a digest of summaries of the web", required_tools=("summarize",))
    shelf.descriptors = (web, summary, digest)
    told = await desk.ask("operator", "discovery:describe", {"id": "skill:summarize"})
    assert told["available"] is False
    assert told["unavailable_because"] == "needs web-search, which cannot be used now"
    chained = await desk.ask("operator", "discovery:describe", {"id": "skill:digest"})
    assert chained["unavailable_because"] == "needs summarize, which cannot be used now"
    asked = {"query": "summarize pages of the web", "only_available": True}
    answer = await desk.ask("operator", "discovery:discover", asked)
    assert not {"skill:summarize", "skill:digest"} & set(ids(answer))


async def test_what_is_not_granted_is_not_found_by_any_name(desk: Desk) -> None:
    for query in ("state:set", "tool:state:set", "write one value of the shared state"):
        answer = await desk.ask("observer", "discovery:discover", {"query": query})
        assert "state:set" not in repr({**answer, "query": ""})


async def test_what_is_not_granted_is_answered_like_what_does_not_exist(desk: Desk) -> None:
    for event in ("discovery:describe", "discovery:feedback"):
        more = {"worked": True} if event.endswith("feedback") else {}
        hidden = await desk.answer("executor", event, {"id": "tool:key:revoke", **more})
        absent = await desk.answer("executor", event, {"id": "tool:kex:revoke", **more})
        assert hidden.error is not None
        assert absent.error is not None
        assert hidden.error.code == absent.error.code == "not_found"
        assert hidden.error.hint == absent.error.hint


async def test_a_grant_that_shrinks_between_two_questions_shows_less(desk: Desk) -> None:
    before = await desk.ask("executor", "discovery:discover", {"query": "state"})
    after = await desk.ask("observer", "discovery:discover", {"query": "state"})
    assert "tool:state:set" in ids(before)
    assert "tool:state:set" not in ids(after)
    assert after["total_indexed"] < before["total_indexed"]


async def test_the_budget_of_a_question_is_kept(desk: Desk) -> None:
    counter = make_counter()
    for total in (0, 1, 40, 150, 400):
        asked = {"query": "send a message", "config": {"total_tokens": total}, "render": True}
        answer = await desk.ask("coordinator", "discovery:discover", asked)
        texts_ = [answer[tier] for tier in ("map", "summary", "detail")]
        assert counter.count("\n\n".join(text for text in texts_ if text)) <= total + 2
        assert answer["tokens"]["total"] <= total
        assert counter.count(answer["prompt"]) <= total


async def test_a_limit_of_the_grant_beats_the_wish_of_the_caller() -> None:
    catalogue = """
  discovery: {description: d, event_patterns: ["discovery:discover"], always_included: true}
"""
    desk = Desk(built_in_handlers(), texts(catalogue, tight="limits: {max_tokens_per_turn: 30}"))
    asked = {"query": "anything", "config": {"total_tokens": 5_000}}
    answer = await desk.ask("tight", "discovery:discover", asked)
    assert answer["tokens"]["total"] <= 30


async def test_the_tools_of_a_turn_end_with_the_one_to_search_for_more(desk: Desk) -> None:
    answer = await desk.ask("executor", "discovery:tools", {"query": "keep a value for later"})
    assert answer["tools"][0]["event"] == "state:set"
    assert answer["tools"][0]["input_schema"]["required"] == ["key", "value"]
    assert answer["tools"][-1]["name"] == "discover_capabilities"
    assert answer["tokens"]["sent"] < answer["tokens"]["full_dump"]


async def test_the_tools_of_a_turn_keep_the_budget_and_name_what_did_not_fit(desk: Desk) -> None:
    asked = {"query": "spawn an agent under a profile", "config": {"total_tokens": 400}}
    answer = await desk.ask("coordinator", "discovery:tools", asked)
    assert answer["tokens"]["sent"] <= 400
    assert "tool:agent:spawn" in [one["id"] for one in answer["skipped"]]
    assert answer["tools"][-1]["name"] == "discover_capabilities"


async def test_gibberish_gets_the_map_and_the_meta_tool(desk: Desk) -> None:
    answer = await desk.ask("executor", "discovery:discover", {"query": "qwzx jjkk vvbb"})
    assert answer["capabilities"] == []
    assert (answer["summary"], answer["detail"]) == ("", "")
    assert "State" in answer["map"]
    listed = await desk.ask("executor", "discovery:tools", {"query": "qwzx jjkk vvbb"})
    assert [tool["name"] for tool in listed["tools"]] == ["discover_capabilities"]


@pytest.mark.parametrize("query", ["", "😀", "x" * 100_000, "状态 存储", "\x00\n\t", "ключ"])
async def test_odd_requests_are_answered(desk: Desk, query: str) -> None:
    answer = await desk.ask("executor", "discovery:discover", {"query": query})
    assert answer["tokens"]["total"] <= 1850


async def test_a_request_that_is_too_long_is_refused(desk: Desk) -> None:
    answer = await desk.answer("executor", "discovery:discover", {"query": "x" * 200_000})
    assert answer.error is not None
    assert answer.error.code == "invalid_data"


async def test_everything_about_one_thing_by_id_event_or_name(desk: Desk) -> None:
    for name in ("tool:state:get", "state:get", "state_get"):
        told = await desk.ask("observer", "discovery:describe", {"id": name})
        assert told["id"] == "tool:state:get"
        assert told["full_schema"]["required"] == ["key"]
        assert "file" not in told["source_ref"]


async def test_the_operator_is_told_where_it_stands(desk: Desk) -> None:
    told = await desk.ask("operator", "discovery:describe", {"id": "state:get"})
    assert told["source_ref"]["file"].endswith("state/events.py")


async def test_a_skill_of_a_capability_is_for_its_holders(shelf: Shelf) -> None:
    shelf.descriptors = (skill("taxes", "File the taxes of a company"),)
    catalogue = """
  discovery: {description: d, event_patterns: ["discovery:discover"], always_included: true}
  accounting: {description: a, event_patterns: ["state:get"], skills: [taxes]}
"""
    desk = Desk(
        built_in_handlers(),
        texts(catalogue, clerk="capabilities: [accounting]", guest="capabilities: []"),
    )
    desk.kernel.service(Discovery)._gather = shelf
    asked = {"query": "file the taxes"}
    assert ids(await desk.ask("clerk", "discovery:discover", asked)) == ["skill:taxes"]
    assert ids(await desk.ask("guest", "discovery:discover", asked)) == []


async def test_a_file_that_is_gone_is_gone_from_every_answer(desk: Desk, shelf: Shelf) -> None:
    shelf.descriptors = (skill("taxes", "File the taxes of a company"),)
    asked = {"query": "file the taxes"}
    assert "skill:taxes" in ids(await desk.ask("executor", "discovery:discover", asked))
    shelf.descriptors = ()
    desk.kernel.service(Discovery).folders_changed()
    answers = [
        await desk.ask("executor", "discovery:discover", asked),
        await desk.ask("executor", "discovery:tools", asked),
        await desk.ask("executor", "discovery:stats"),
    ]
    assert "taxes" not in repr(answers)
    gone = await desk.answer("executor", "discovery:describe", {"id": "skill:taxes"})
    assert gone.error is not None
    assert gone.error.code == "not_found"


async def test_no_file_stands_in_for_an_event(desk: Desk, shelf: Shelf) -> None:
    shelf.descriptors = (
        Descriptor(id="tool:state:get", kind="tool", name="state_get", description="poisoned"),
    )
    told = await desk.ask("observer", "discovery:describe", {"id": "tool:state:get"})
    assert told["description"] != "poisoned"


async def test_a_descriptor_of_an_event_that_nobody_granted_stays_hidden(
    desk: Desk, shelf: Shelf
) -> None:
    shelf.descriptors = (
        Descriptor(
            id="tool:mine", kind="tool", name="mine", description="revoke", event="key:revoke"
        ),
    )
    answer = await desk.ask("executor", "discovery:discover", {"query": "mine"})
    assert "tool:mine" not in ids(answer)


ZAP = {"query": "zap the frobnicator into orbit"}


async def test_feedback_teaches_and_only_moves_ranks(desk: Desk) -> None:
    assert ids(await desk.ask("executor", "discovery:discover", ZAP)) == []
    await desk.ask("executor", "discovery:feedback", FEEDBACK)
    answer = await desk.ask("executor", "discovery:discover", ZAP)
    assert ids(answer)[0] == "tool:state:set"
    assert answer["fits"]
    assert "frobnicator" not in repr(answer)
    (learned,) = (await desk.ask("operator", "discovery:examples"))["items"]
    assert (learned["id"], learned["query"]) == ("tool:state:set", ZAP["query"])
    assert learned["counts"] == "own"
    assert ids(await desk.ask("operator", "discovery:discover", ZAP)) == []


FEEDBACK = {"id": "state:set", "worked": True, "query": ZAP["query"]}
KEEP = {"query": "keep a value for later"}


async def test_a_call_of_what_was_shown_teaches_and_of_nothing_else(desk: Desk) -> None:
    found = ids(await desk.ask("executor", "discovery:discover", KEEP))
    assert "tool:state:set" in found
    assert "tool:state:list" not in found
    await desk.ask("executor", "state:list")
    await desk.ask("executor", "state:set", {"key": "a", "value": 1})
    learned = (await desk.ask("operator", "discovery:examples"))["items"]
    assert [one["id"] for one in learned] == ["tool:state:set"]


async def test_a_refused_call_of_what_was_shown_is_evidence_against_it(desk: Desk) -> None:
    await desk.ask("executor", "discovery:discover", KEEP)
    await desk.answer("observer", "state:set", {"key": "a", "value": 1})  # its profile changed
    (own,) = desk.kernel.service(Experience).own("ann", KEEP["query"])
    assert (own.id, own.likeness) == ("tool:state:set", 0.0)
    assert own.penalty > 0


async def test_tools_of_a_turn_that_did_not_fit_were_not_shown(desk: Desk) -> None:
    asked = {"query": "spawn an agent under a profile", "config": {"total_tokens": 400}}
    answer = await desk.ask("coordinator", "discovery:tools", asked)
    (question,) = desk.kernel.service(Watch).waiting["ann", ""]
    assert question.shown == {f"tool:{one['event']}" for one in answer["tools"][:-1]}
    assert "tool:agent:spawn" not in question.shown


async def test_what_an_operator_removes_is_forgotten(desk: Desk) -> None:
    await desk.ask("executor", "discovery:feedback", FEEDBACK)
    before = await desk.ask("operator", "discovery:examples", {"id": "tool:state:set"})
    assert before["total"] == 1
    gone = {"id": "tool:state:set", "query": ZAP["query"]}
    assert (await desk.ask("operator", "discovery:forget", gone)) == {"removed": 1}
    assert (await desk.ask("operator", "discovery:examples"))["total"] == 0
    assert ids(await desk.ask("executor", "discovery:discover", ZAP)) == []


async def test_upkeep_and_refused_calls_teach_nothing(desk: Desk) -> None:
    await desk.ask("executor", "discovery:discover", {"query": "zap the frobnicator"})
    await desk.ask("executor", "system:health")
    await desk.answer("executor", "state:get", {"key": "absent"})
    await desk.answer("executor", "key:list")
    assert (await desk.ask("operator", "discovery:examples"))["total"] == 0


async def test_a_look_at_somebody_elses_view_is_no_turn_of_its_own(desk: Desk) -> None:
    asked = {"query": "keep a value", "profile": "observer"}
    answer = await desk.ask("operator", "discovery:discover", asked)
    assert "tool:state:set" not in ids(answer)
    assert (await desk.ask("operator", "discovery:stats"))["total_bill"]["turns"] == 0


async def test_a_stranger_cannot_ask_about_others(desk: Desk) -> None:
    for whom in ({"profile": "administrator"}, {"agent": "operator"}):
        answer = await desk.answer("executor", "discovery:discover", {"query": "x", **whom})
        assert answer.error is not None
        assert answer.error.code == "unknown_agent"


async def test_turns_are_billed_to_their_caller(desk: Desk) -> None:
    answer = await desk.ask("executor", "discovery:discover", {"query": "keep a value"})
    told = await desk.ask("executor", "discovery:stats")
    assert told["bill"]["turns"] == 1
    assert told["bill"]["sent"] == answer["tokens"]["total"]
    assert told["bill"]["full_dump"] == answer["tokens"]["full_dump"] == told["full_dump"]
    assert "bills" not in told
    everything = await desk.ask("operator", "discovery:stats")
    assert everything["bills"]["ann"]["turns"] == everything["total_bill"]["turns"] == 1


async def test_what_is_wrong_with_files_is_told_to_the_operator_alone(
    desk: Desk, shelf: Shelf
) -> None:
    shelf.problems = (Problem(Place("/secret/SKILL.md", 3, 1), "empty_file", "it is empty"),)
    told = await desk.ask("operator", "discovery:refresh")
    assert told["problems"][0]["line"] == 3
    assert told["overridden"] == ["skill:x: b instead of a"]
    for event in ("discovery:stats", "discovery:discover"):
        answer = await desk.ask(
            "executor", event, {"query": "a"} if "discover" in event[10:] else {}
        )
        assert "/secret" not in repr(answer)


async def test_an_unknown_field_of_the_config_is_refused_by_name(desk: Desk) -> None:
    asked = {"query": "a", "config": {"top_kk": 3}}
    answer = await desk.answer("executor", "discovery:discover", asked)
    assert answer.error is not None
    assert "top_kk" in answer.error.message


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    """One loop for all examples: the store of a desk belongs to the loop that it was opened in."""
    with start_blocking_portal() as found:
        yield found


@given(
    query=st.one_of(st.text(max_size=60), st.sampled_from(["keep a value", "agent", "state:set"])),
    profile=st.sampled_from(PROFILES),
    earlier=st.lists(st.sampled_from(PROFILES), max_size=2),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_shown_is_allowed_whoever_asked_before(
    portal: BlockingPortal, query: str, profile: str, earlier: Sequence[str]
) -> None:
    async def ask() -> None:
        for who in earlier:
            await SHARED.ask(who, "discovery:discover", {"query": query})
        answer = await SHARED.ask(profile, "discovery:discover", {"query": query})
        events = [name.removeprefix("tool:") for name in ids(answer)]
        checked = await SHARED.ask(profile, "permission:check_many", {"events": events})
        assert all(result["allowed"] for result in checked["results"])

    portal.call(ask)


SHARED = Desk(built_in_handlers(), starter_files())


async def test_the_map_and_the_figures_name_the_same_groups(desk: Desk, shelf: Shelf) -> None:
    shelf.descriptors = (
        skill("taxes", "File taxes"),
        skill("books", "Keep books", category="Money"),
        skill("coins", "Count coins", category="money"),
    )
    found = (await desk.ask("operator", "discovery:discover", {"query": "zzz"}))["map"]
    told = (await desk.ask("operator", "discovery:stats"))["categories"]
    lines = (re.match(r"- (.+): .* \((\d+)\)$", line) for line in found.splitlines())
    assert {line[1]: int(line[2]) for line in lines if line} == told
    assert (told["skill"], told["Money"]) == (1, 2)


async def test_side_effects_are_said_where_they_are_known_and_else_supposed() -> None:
    handlers = built_in_handlers()
    listing = handlers["state:list"]
    spec = msgspec.structs.replace(listing.spec, effect=None)
    handlers["state:list"] = Handler(spec, listing.function, inline=listing.inline)
    desk = Desk(handlers, starter_files())
    said = {"state:get": "", "state:set": "Has side effects", "state:list": "May have side effects"}
    for event, words in said.items():
        told = await desk.ask("operator", "discovery:describe", {"id": event, "render": True})
        lines = [line for line in told["prompt"].splitlines() if "side effects: " in line]
        assert [line.partition(":")[0] for line in lines] == ([words] if words else [])
        assert told["effect_known"] == (event != "state:list")
