"""event:subscribe, and the events that are only ever pushed."""

import pytest
from tests.fakes import built_in_handlers, texts
from tests.features.messages.agent_desk import AgentDesk

from remit.model.principal import Cause

PUSHED = [
    "audit:entry",
    "config:changed",
    "config:rejected",
    "message:direct",
    "permission:changed",
]


@pytest.fixture
def board() -> AgentDesk:
    return AgentDesk()


async def test_changes_of_state_are_seen_by_those_who_may_change_it(board: AgentDesk) -> None:
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


STATE = """\
  base: {description: d, event_patterns: ["event:*", "state:*"], always_included: true}
"""


def corner(*prefixes: str) -> str:
    return f"limits: {{state_prefixes: {list(prefixes)}}}\n"


async def test_who_works_in_a_part_of_the_state_hears_of_that_part_only() -> None:
    files = texts(STATE, all="", team=corner("team/"), none="limits: {state_prefixes: []}\n")
    board = AgentDesk(files)
    ann, kim, ned, tim = (
        board.line(name, profile)
        for name, profile in (("ann", "all"), ("kim", "team"), ("ned", "none"), ("tim", "all"))
    )
    for one in (kim, ned, tim, board.line("operator")):
        await one.ask("event:subscribe", {"patterns": ["state:*"]})
    for key in ("team/plan", "other/plan", "team", "xteam/"):
        await ann.ask("state:set", {"key": key, "value": 1})
    await ann.ask("state:delete", {"key": "other/plan"})
    await ann.ask("state:delete", {"key": "team/plan"})
    assert [(event, data["key"]) for event, data in kim.events] == [
        ("state:set", "team/plan"),
        ("state:delete", "team/plan"),
    ]
    assert ned.events == []
    assert len(tim.events) == 6


async def test_a_part_of_the_state_that_is_taken_away_is_not_heard_of_any_more() -> None:
    board = AgentDesk(texts(STATE, all="", team=corner("team/")))
    ann, kim = board.line("ann", "all"), board.line("kim", "team")
    kid = board.line("kid", "all", parent="kim")
    for one in (kim, kid):
        await one.ask("event:subscribe", {"patterns": ["state:*"]})
    await ann.ask("state:set", {"key": "team/a", "value": 1})
    board.desk.files = texts(STATE, all="", team=corner("club/"))
    await board.desk.kernel.reloader.reload(Cause("signal"))
    await ann.ask("state:set", {"key": "team/a", "value": 2})
    await ann.ask("state:set", {"key": "club/a", "value": 3})
    assert [data["key"] for _, data in kim.events] == ["team/a", "club/a"]
    assert [data["key"] for _, data in kid.events] == ["team/a", "club/a"], "as its parent may"


async def test_who_works_in_a_part_of_the_state_is_not_told_what_has_no_key() -> None:
    board = AgentDesk(texts(STATE, all="", team=corner("team/")))
    kim, tim = board.line("kim", "team"), board.line("tim", "all")
    for one in (kim, tim):
        await one.ask("event:subscribe", {"patterns": ["state:*"]})
    for data in ({}, {"key": None}, {"key": 1}, ["team/"], "team/"):
        board.delivery.publish("state:set", data, "daemon")
    assert (len(kim.events), len(tim.events)) == (0, 5)


async def test_the_totals_of_a_list_count_only_the_callers_part_of_the_state() -> None:
    board = AgentDesk(texts(STATE, all="", team=corner("team/a/", "club/", "void/")))
    ann, kim = board.line("ann", "all"), board.line("kim", "team")
    keys = ["club/1", "club/2", "team/1", "team/a/1", "team/a/2", "team/b/1", "zoo/1"]
    for key in keys:
        await ann.ask("state:set", {"key": key, "value": 1})
    mine = ["club/1", "club/2", "team/a/1", "team/a/2"]
    for limit in (1, 2, 3, 50):
        found: list[str] = []
        after: str | None = ""
        while after is not None:
            page = await kim.ask("state:list", {"limit": limit, "after": after})
            assert page["total"] == 4
            found += [item["key"] for item in page["items"]]
            after = page["next"]
        assert found == mine
    for prefix, total in (("team/", 2), ("team/a/1", 1), ("team/b", 0), ("zoo", 0), ("c", 2)):
        page = await kim.ask("state:list", {"prefix": prefix})
        assert (page["total"], len(page["items"]), page["next"]) == (total, total, None)
    for key in ("zoo/1", "zoo/2", "team/1"):
        assert await kim.refused("state:get", {"key": key}) == "denied", "there or not"


async def test_a_pattern_is_taken_in_the_same_way_whatever_it_covers(
    board: AgentDesk,
) -> None:
    ned = board.line("ned", "minimal")
    for pattern in ("state:set", "state:*", "no:such", "key:add", "*", "permission:check"):
        assert pattern in (await ned.ask("event:subscribe", {"patterns": [pattern]}))["patterns"]


@pytest.mark.parametrize("pattern", ["", "state", "State:*", "a:**", "*:set", "a:b\n", "x" * 5000])
async def test_a_pattern_that_cannot_be_read_is_refused_with_its_place(
    board: AgentDesk, pattern: str
) -> None:
    ann = board.line("ann")
    for event in ("event:subscribe", "event:unsubscribe"):
        answer = await ann.answer(event, {"patterns": ["state:*", pattern]})
        assert answer.error is not None
        assert answer.error.code == "invalid_data"
        assert answer.error.details == {"path": "$.patterns[1]"}
    assert (await ann.ask("message:subscriptions"))["patterns"] == []


async def test_after_unsubscribing_no_event_comes(board: AgentDesk) -> None:
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
async def test_a_pushed_event_is_not_called(board: AgentDesk, event: str, data: object) -> None:
    answer = await board.line("operator").answer(event, data)
    assert answer.error is not None
    assert (answer.error.code, "is pushed, not called" in answer.error.message) == (
        "conflict",
        True,
    )
    assert "event:subscribe" in answer.error.hint


async def test_who_may_not_see_a_pushed_event_is_denied_as_for_any_other(
    board: AgentDesk,
) -> None:
    ned = board.line("ned", "minimal")
    assert await ned.refused("audit:entry") == "denied"
    assert (await ned.ask("permission:check", {"event": "audit:entry"})).allowed is False
    assert (await ned.ask("permission:check", {"event": "permission:changed"})).allowed is True


async def test_help_shows_a_pushed_event_and_tool_lists_do_not(board: AgentDesk) -> None:
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
