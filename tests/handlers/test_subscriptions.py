"""event:subscribe, and the events that are only ever pushed."""

import pytest
from tests.fakes import built_in_handlers
from tests.handlers.switchboard import Switchboard

PUSHED = [
    "audit:entry",
    "config:changed",
    "config:rejected",
    "message:direct",
    "permission:changed",
]


@pytest.fixture
def board() -> Switchboard:
    return Switchboard()


async def test_changes_of_state_are_seen_by_those_who_may_change_it(board: Switchboard) -> None:
    ann, kim, ned = (
        board.line("ann", "executor"), board.line("kim", "executor"), board.line("ned", "minimal"),
    )  # fmt: skip
    for one in (kim, ned):
        assert await one.ask("event:subscribe", {"patterns": ["state:*"]}) == {
            "patterns": ["state:*"]
        }
    await ann.ask("state:set", {"key": "plan", "value": "secret"})
    await ann.ask("state:get", {"key": "plan"})
    await ann.ask("state:delete", {"key": "plan"})
    await ann.ask("state:delete", {"key": "plan"})
    assert kim.events == [
        ("state:set", {"key": "plan", "version": 1, "by": "ann"}),
        ("state:delete", {"key": "plan", "version": 0, "by": "ann"}),
    ]
    assert ned.events == []


async def test_a_pattern_is_taken_in_the_same_way_whatever_it_covers(board: Switchboard) -> None:
    ned = board.line("ned", "minimal")
    for pattern in ("state:set", "state:*", "no:such", "key:add", "*", "permission:check"):
        assert pattern in (await ned.ask("event:subscribe", {"patterns": [pattern]}))["patterns"]


@pytest.mark.parametrize("pattern", ["", "state", "State:*", "a:**", "*:set", "a:b\n", "x" * 5000])
async def test_a_pattern_that_cannot_be_read_is_refused_with_its_place(
    board: Switchboard, pattern: str
) -> None:
    ann = board.line("ann")
    for event in ("event:subscribe", "event:unsubscribe"):
        answer = await ann.answer(event, {"patterns": ["state:*", pattern]})
        assert answer.error is not None
        assert answer.error.code == "invalid_data"
        assert answer.error.details == {"path": "$.patterns[1]"}
    assert (await ann.ask("message:subscriptions"))["patterns"] == []


async def test_after_unsubscribing_no_event_comes(board: Switchboard) -> None:
    ann = board.line("ann", "executor")
    await ann.ask("event:subscribe", {"patterns": ["state:*", "message:*"]})
    left = await ann.ask("event:unsubscribe", {"patterns": ["state:*", "never:asked"]})
    assert left == {"patterns": ["message:*"]}
    await ann.ask("state:set", {"key": "a", "value": 1})
    assert ann.heard == []


def test_these_events_are_pushed() -> None:
    found = built_in_handlers()
    assert all(found[name].spec.pushed for name in PUSHED)


@pytest.mark.parametrize("event", PUSHED)
@pytest.mark.parametrize("data", [None, {}, {"odd": 1}, [1]])
async def test_a_pushed_event_is_not_called(board: Switchboard, event: str, data: object) -> None:
    answer = await board.line("operator").answer(event, data)
    assert answer.error is not None
    assert (answer.error.code, "is pushed, not called" in answer.error.message) == (
        "conflict",
        True,
    )
    assert "event:subscribe" in answer.error.hint


async def test_who_may_not_see_a_pushed_event_is_denied_as_for_any_other(
    board: Switchboard,
) -> None:
    ned = board.line("ned", "minimal")
    assert await ned.refused("audit:entry") == "denied"
    assert (await ned.ask("permission:check", {"event": "audit:entry"})).allowed is False
    assert (await ned.ask("permission:check", {"event": "permission:changed"})).allowed is True


async def test_help_shows_a_pushed_event_and_tool_lists_do_not(board: Switchboard) -> None:
    ann = board.line("ann")
    shown = await ann.ask("system:help", {"event": "message:direct"})
    assert shown["flags"]["pushed"] is True
    assert [parameter["name"] for parameter in shown["parameters"]] == ["from", "message"]
    line = await ann.ask("system:help", {"event": "message:direct", "format": "compact"})
    assert line["help"].startswith("<- message:direct(")
    everything = await ann.ask("system:discover", {"level": "full"})
    names = {entry["event"] for found in everything["namespaces"].values() for entry in found}
    assert "message:direct" in names
    listed = await ann.ask("system:discover", {"level": "full", "format": "mcp"})
    tools = {tool["event"] for tool in listed["tools"]}
    assert "message:publish" in tools
    assert not tools.intersection(PUSHED)
