"""Sessions: profile, agent, session; each layer only ever takes away."""

import pytest
from tests.features.messages.circle import Circle

from remit.kernel.authority.session_manager import MAX_NAMES, MAX_OPEN, MAX_STEPS

READING = ["state:get", "state:list", "permission:*", "system:*", "session:*"]


@pytest.fixture
async def circle() -> Circle:
    made = Circle()
    await made.client("boss", "boss")
    return made


async def test_a_session_leaves_what_it_names_and_nothing_else(circle: Circle) -> None:
    left = await circle.open("boss", "s", allowed_tools=["state:get", "WebFetch"])
    assert left["allowed_events"] == ["state:get"]
    assert left["allowed_claude_tools"] == ["WebFetch"]
    assert circle.holds("boss", "s") == {"state:get"}
    assert "state:set" in circle.holds("boss")


async def test_a_request_that_names_a_session_is_narrowed_by_it_and_others_are_not(
    circle: Circle,
) -> None:
    await circle.open("boss", "s", disallowed_tools=["state:s*"])
    data = {"key": "k", "value": 1}
    refused = await circle.error("boss", "s", "state:set", data)
    assert refused.code == "denied"
    assert refused.details == {"reason": "explicit_deny", "event": "state:set", "session": "s"}
    await circle.told("boss", None, "state:set", data)
    assert (await circle.told("boss", "s", "state:get", {"key": "k"}))["value"] == 1


async def test_an_effect_and_limits_narrow_too(circle: Circle) -> None:
    left = await circle.open("boss", "s", max_effect="read", limits={"state_prefixes": ["a/"]})
    assert "state:get" in left["allowed_events"]
    assert "state:set" not in left["allowed_events"]
    assert left["allowed_claude_tools"] == []
    assert left["limits"] == {"state_prefixes": ["a/"]}
    assert (await circle.error("boss", "s", "state:get", {"key": "b"})).code == "denied"


async def test_each_further_step_leaves_only_what_all_leave(circle: Circle) -> None:
    await circle.open("boss", "s", allowed_tools=["state:*", "session:narrow"])
    await circle.narrow("boss", "s", allowed_tools=["state:get", "state:set", "agent:spawn"])
    await circle.narrow("boss", "s", disallowed_tools=["state:set"])
    assert circle.holds("boss", "s") == {"state:get"}


async def test_a_name_that_nobody_opened_is_a_label(circle: Circle) -> None:
    assert circle.holds("boss", "typo") == circle.holds("boss")


async def test_a_closed_session_refuses_every_request_that_names_it(circle: Circle) -> None:
    await circle.open("boss", "s")
    await circle.ask("boss", "session:close", {"session": "s"})
    refused = await circle.error("boss", "s", "system:health")
    assert (refused.code, refused.details["reason"]) == ("denied", "explicit_deny")
    assert (refused.details["session"], refused.details["closed"]) == ("s", True)
    narrowed = await circle.error("boss", None, "session:narrow", {"session": "s"})
    assert narrowed.code == "not_found"
    await circle.told("boss", None, "system:health")


@pytest.mark.parametrize(
    ("field", "text", "hint"),
    [
        ("allowed_tools", "state:gett", "did you mean 'state:get'?"),
        ("disallowed_tools", "state:gett", "did you mean 'state:get'?"),
        ("allowed_tools", "key:*", ""),
        ("allowed_tools", "webfetch", "did you mean 'WebFetch'?"),
        ("allowed_tools", "Bash", "known: WebFetch"),
        ("allowed_tools", "state:*:get", "write an event name"),
        ("allowed_tools", "*", "leave allowed_tools out"),
        ("disallowed_tools", "key:add", ""),
    ],
)
async def test_a_mistake_in_a_list_is_told_with_a_suggestion_from_what_the_caller_holds(
    circle: Circle, field: str, text: str, hint: str
) -> None:
    data = {"session": "s", field: ["state:get", text]}
    error = await circle.error("boss", None, "session:open", data)
    assert (error.code, error.details["path"]) == ("invalid_data", f"$.{field}[1]")
    assert error.hint.startswith(hint)
    assert "key:" not in error.hint
    assert circle.authority.fleet.sessions.get("boss", "s") is None


async def test_inside_a_session_every_list_shows_what_every_check_allows(circle: Circle) -> None:
    await circle.spawn("boss", "kid", "writer")
    await circle.open("boss", "s", allowed_tools=[*READING, "agent:status"])
    names = sorted(circle.authority.current.everything.events)
    listed = await circle.told("boss", "s", "system:discover", {"level": "full"})
    shown = {each["event"] for entries in listed["namespaces"].values() for each in entries}
    many = await circle.told("boss", "s", "permission:check_many", {"events": names})
    assert shown == {each["event"] for each in many["results"] if each["allowed"]}
    for name in names:
        check = await circle.told("boss", "s", "permission:check", {"event": name})
        why = await circle.told("boss", "s", "permission:explain", {"event": name})
        assert check.allowed == (name in shown) == why["allowed"]
        answer = await circle.inside("boss", "s", name, {"no_such_field": 1})
        assert (answer.error is not None and answer.error.code == "denied") != (name in shown)
    status = await circle.told("boss", "s", "agent:status", {"agent_id": "boss"})
    assert set(status["allowed_events"]) == shown
    kid = await circle.told("boss", "s", "agent:status", {"agent_id": "kid"})
    assert set(kid["allowed_events"]) == shown & circle.holds("kid")
    asked = {"event": "state:set", "agent": "kid"}
    assert not (await circle.told("boss", "s", "permission:check", asked)).allowed


async def test_a_bound_agent_is_narrowed_whatever_its_requests_name(circle: Circle) -> None:
    await circle.open("boss", "s", disallowed_tools=["state:set"])
    given = await circle.spawn("boss", "kid", "writer", session="s")
    assert given["bound"] == ["s"]
    assert "state:set" not in given["allowed_events"]
    await circle.open("kid", "mine", disallowed_tools=["state:delete"])
    for session in (None, "s", "other", "mine"):
        assert "state:set" not in circle.holds("kid", session)
    assert "state:delete" in circle.holds("kid")
    assert "state:delete" not in circle.holds("kid", "mine")
    status = await circle.ask("boss", "agent:status", {"agent_id": "kid"})
    assert (status["session"], status["bound"]) == ("s", ["s"])
    assert set(status["allowed_events"]) == circle.holds("kid")


async def test_narrowing_and_closing_act_at_once_on_bound_agents_and_all_below_them(
    circle: Circle,
) -> None:
    await circle.open("boss", "s")
    await circle.spawn("boss", "lead", "lead", session="s")
    await circle.spawn("lead", "kid", "writer")
    version = circle.authority.fleet.version
    await circle.narrow("boss", "s", disallowed_tools=["state:set"])
    assert circle.authority.fleet.version > version
    assert "state:set" not in circle.holds("kid")
    assert "state:get" in circle.holds("kid")
    closed = await circle.ask("boss", "session:close", {"session": "s"})
    assert closed["agents"] == ["kid", "lead"]
    assert circle.holds("kid") == circle.holds("lead") == set()


async def test_an_agent_is_bound_to_the_session_of_the_request_that_spawned_it(
    circle: Circle,
) -> None:
    await circle.open("boss", "s", disallowed_tools=["state:set"])
    data = {"agent_id": "kid", "profile": "writer"}
    assert (await circle.error("boss", "s", "agent:spawn", data)).code == "exceeds_parent"
    given = await circle.told("boss", "s", "agent:spawn", data | {"on_excess": "narrow"})
    assert given["bound"] == ["s"]
    assert "state:set" not in circle.holds("kid")


async def test_a_label_binds_nothing(circle: Circle) -> None:
    given = await circle.spawn("boss", "kid", "writer", session="nobody-opened-this")
    assert given["bound"] == []
    assert "state:set" in circle.holds("kid")


async def test_explain_names_the_session_that_cuts(circle: Circle) -> None:
    await circle.open("boss", "s", allowed_tools=["state:get", "permission:*"])
    await circle.spawn("boss", "kid", "writer", session="s")
    for who, session in (("boss", "s"), ("kid", None)):
        why = await circle.told(who, session, "permission:explain", {"event": "state:set"})
        assert (why["allowed"], why["reason"], why["session"]) == (False, "no_grant", "s")
    why = await circle.ask("operator", "permission:explain", {"event": "state:set", "agent": "kid"})
    assert (why["session"], why["granted_by"][0]["capability"]) == ("s", "write")
    allowed = await circle.told("kid", None, "permission:explain", {"event": "state:get"})
    assert (allowed["allowed"], allowed["session"]) == (True, None)
    missing = await circle.told("kid", None, "permission:explain", {"event": "system:stats"})
    assert missing["session"] is None  # its own rules never gave that


async def test_the_operator_can_work_in_a_session_and_bind_anybody_to_it(circle: Circle) -> None:
    await circle.open("operator", "calm", max_effect="read")
    refused = await circle.error("operator", "calm", "state:set", {"key": "k", "value": 1})
    assert (refused.code, refused.details["session"]) == ("denied", "calm")
    assert (await circle.error("operator", "calm", "no:such")).code == "unknown_event"
    why = await circle.told("operator", "calm", "permission:explain", {"event": "state:set"})
    assert (why["allowed"], why["session"]) == (False, "calm")
    await circle.open("operator", "tidy", disallowed_tools=["state:set"])
    data = {"agent_id": "kid", "profile": "boss"}
    assert (await circle.error("operator", "tidy", "agent:spawn", data)).code == "exceeds_parent"
    await circle.told("operator", "tidy", "agent:spawn", data | {"on_excess": "narrow"})
    assert "state:set" not in circle.holds("kid")
    await circle.spawn("operator", "ann", "boss", session="calm")
    assert "state:set" not in circle.holds("ann")
    assert "state:set" not in circle.holds("boss", "calm")


async def test_a_caller_lists_its_own_sessions_and_those_below_it(circle: Circle) -> None:
    await circle.client("other", "boss")
    await circle.open("other", "theirs")
    await circle.open("boss", "b", allowed_tools=["state:get"])
    await circle.spawn("boss", "kid", "writer", session="b")
    found = await circle.ask("boss", "session:list", {"limit": 1})
    assert (found["total"], found["next"]) == (1, None)
    (item,) = found["items"]
    assert (item["session"], item["owner"], item["open"], item["agents"]) == ("b", "boss", True, 1)
    assert item["steps"][0]["allowed_tools"] == ["state:get"]
    assert (await circle.ask("operator", "session:list"))["total"] == 2
    await circle.ask("boss", "session:close", {"session": "b"})
    assert not (await circle.ask("boss", "session:list"))["items"][0]["open"]


async def test_an_ancestor_may_narrow_and_close_what_is_below_it(circle: Circle) -> None:
    await circle.spawn("boss", "kid", "writer")
    await circle.open("kid", "s")
    await circle.narrow("boss", "s", owner="kid", disallowed_tools=["state:set"])
    assert "state:set" not in circle.holds("kid", "s")
    await circle.ask("operator", "session:close", {"session": "s", "owner": "kid"})
    assert circle.holds("kid", "s") == set()


async def test_nobody_opens_more_than_so_many(circle: Circle) -> None:
    for at in range(MAX_OPEN):
        await circle.open("boss", f"s{at}")
    error = await circle.error("boss", None, "session:open", {"session": "more"})
    assert (error.code, error.details["limit"]) == ("limit_exceeded", "sessions")
    assert (await circle.error("boss", None, "session:open", {"session": "s0"})).code == "conflict"


async def test_closed_names_are_never_forgotten_so_there_is_an_end_to_new_ones(
    circle: Circle,
) -> None:
    for at in range(MAX_NAMES):
        await circle.open("boss", f"s{at}")
        await circle.ask("boss", "session:close", {"session": f"s{at}"})
    error = await circle.error("boss", None, "session:open", {"session": "more"})
    assert error.code == "limit_exceeded"
    assert circle.holds("boss", "s0") == set()
    await circle.open("boss", "s0", allowed_tools=["state:get"])
    assert circle.holds("boss", "s0") == {"state:get"}
    assert len(circle.authority.fleet.sessions) == MAX_NAMES


async def test_a_session_does_not_grow_without_end(circle: Circle) -> None:
    await circle.open("boss", "s")
    for at in range(MAX_STEPS):
        await circle.narrow("boss", "s", limits={"max_children": 100 - at})
    step = {"session": "s", "limits": {"max_children": 0}}
    assert (await circle.error("boss", None, "session:narrow", step)).code == "limit_exceeded"
    prefixes = [f"{at:0500}" for at in range(64)]
    data = {"session": "t", "limits": {"state_prefixes": prefixes}}
    assert (await circle.error("boss", None, "session:open", data)).code == "too_large"


async def test_a_step_that_takes_nothing_is_a_mistake(circle: Circle) -> None:
    await circle.open("boss", "s")
    error = await circle.error("boss", None, "session:narrow", {"session": "s"})
    assert error.code == "invalid_data"
