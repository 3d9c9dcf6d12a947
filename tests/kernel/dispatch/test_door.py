"""The one door, asked for every built-in event: what is not granted is refused before it is read.

A refusal says the same of an event that exists and of one that does not, whatever is sent along.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes import built_in_handlers
from tests.family import PROFILES, Family

from remit.kernel.dispatch.call import Call
from remit.kernel.dispatch.dispatcher import Dispatcher
from remit.kernel.dispatch.own_requests import OWN_REQUESTS
from remit.model.principal import OPERATOR, Principal
from remit_client.wire import Answer, Failure, Request

EVENTS = sorted(built_in_handlers())
JUNK: list[Any] = [
    {"no_such_field": [1, {"deep": None}]},
    "text",
    [1, 2],
    object(),
    {"key": float("nan")},
    {1: 2},
]


@pytest.fixture(scope="module")
async def family() -> Family:
    made = Family()
    for profile in PROFILES:
        await made.spawn("operator", profile, profile)
    return made


def told(failure: Failure, name: str) -> tuple[str, str, str, Any]:
    """All that a refusal says, with `it` for the name that was asked for."""
    details = {key: "it" if value == name else value for key, value in failure.details.items()}
    return (
        failure.code,
        failure.message.replace(name, "it"),
        failure.hint.replace(name, "it"),
        details,
    )


async def refusal(family: Family, who: str, event: str, data: Any = None) -> Failure:
    answer = await family.answer(who, event, data)
    assert answer.error is not None
    return answer.error


@pytest.mark.parametrize("who", sorted(set(PROFILES) - {"slow"}))
async def test_an_event_is_refused_exactly_when_the_grant_does_not_hold_it(
    family: Family, who: str
) -> None:
    held = family.authority.grant(family.principal(who)).events
    for event in EVENTS:
        answer = await family.answer(who, event, {"no_such_field": 1})
        assert answer.error is not None, event
        assert (answer.error.code == "denied") == (event not in held), event


@pytest.mark.parametrize("data", JUNK, ids=lambda data: type(data).__name__)
async def test_what_a_refused_caller_sends_is_not_looked_at(family: Family, data: Any) -> None:
    for event in ("agent:spawn", "key:add", "no:such"):
        error = await refusal(family, "helper", event, data)
        assert (error.code, error.details["reason"]) == ("denied", "no_grant")


async def test_a_refusal_is_the_same_for_what_exists_and_for_what_does_not(family: Family) -> None:
    unknown = told(await refusal(family, "helper", "no:such"), "no:such")
    held = family.authority.grant(family.principal("helper")).events
    for event in set(EVENTS) - held:
        assert told(await refusal(family, "helper", event), event) == unknown, event


NAMES = (
    st.text(max_size=12).filter(lambda name: name not in OWN_REQUESTS)
    | st.sampled_from(EVENTS).map(lambda name: name + ":")
    | st.just("*")
)


@given(name=NAMES)
async def test_no_name_however_odd_is_anything_but_an_answer(family: Family, name: str) -> None:
    outcome = family.dispatcher.submit(Call(Principal("nobody", "agent", "none"), Request(1, name)))
    answer = outcome if isinstance(outcome, Answer) else await outcome.run()
    assert not answer.ok
    assert answer.error is not None
    assert answer.error.code in {"denied", "limit_exceeded"}
    assert answer.id == 1


async def test_the_operator_is_told_that_an_event_does_not_exist_and_what_was_meant(
    family: Family,
) -> None:
    error = await refusal(family, "operator", "state:gett")
    assert (error.code, "'state:get'" in error.hint) == ("unknown_event", True)


async def test_a_request_for_a_later_revision_is_not_decided_by_this_one(family: Family) -> None:
    request = Request(1, "system:health", {}, min_revision=999)  # type: ignore[arg-type]
    answer = family.dispatcher.submit(Call(OPERATOR, request))
    assert isinstance(answer, Answer)
    assert answer.error is not None
    assert (answer.error.code, answer.error.details) == ("conflict", {"revision": 1})


async def test_a_later_revision_tells_nothing_about_what_is_not_held(family: Family) -> None:
    for event in ("key:add", "no:such"):
        call = Call(family.principal("helper"), Request(1, event, min_revision=999))
        outcome = family.dispatcher.submit(call)
        answer = outcome if isinstance(outcome, Answer) else await outcome.run()
        assert answer.error is not None
        assert answer.error.code == "denied"


async def test_every_answer_names_a_decision_of_its_own(family: Family) -> None:
    answers = [await family.answer("operator", "system:health") for _ in range(5)]
    assert len({answer.decision for answer in answers}) == 5
    other = Dispatcher(family.kernel)
    answer = await other.dispatch(OPERATOR, "system:health")
    assert answer.decision.partition("-")[0] != answers[0].decision.partition("-")[0]


@pytest.mark.parametrize(
    ("event", "data"),
    [
        ("self/tools", {"no_such_field": 1}),
        ("self/tool", None),
        ("self/tool", {"name": 3}),
        ("self/news", None),  # nothing can be pushed to a call without a connection
    ],
)
async def test_a_question_about_oneself_that_does_not_fit_is_refused(
    family: Family, event: str, data: Any
) -> None:
    assert (await refusal(family, "helper", event, data)).code == "invalid_data"


async def test_what_one_asks_about_oneself_is_never_more_than_one_holds(family: Family) -> None:
    for who in PROFILES:
        if who == "slow":
            continue
        held = family.authority.grant(family.principal(who)).events
        shown = await family.ask(who, "self/tools")
        assert {tool["event"] for tool in shown["tools"]} <= held
        for event in ("key:add", "no:such"):
            error = await refusal(family, who, "self/tool", {"name": event})
            assert error.code == "denied"
