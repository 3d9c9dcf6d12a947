"""The events of upstream tools: one for each, for good, and what is said of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.model.names import parse_event_name
from remit.model.upstream import Upstream, UpstreamTool
from remit.policy.upstream_tools import (
    effect_of,
    is_let_in,
    segments,
    upstream_event,
    upstream_spec,
    visible,
)

UPSTREAM_TOOLS = st.text(min_size=1, max_size=140)
FEW = st.sampled_from(["get", "GET", "Get", "get_14e30cd1", "g\u00ebt", "get it", "x" * 150])


def upstream(**keys: object) -> Upstream:
    return Upstream(name="time", command="time", **keys)  # type: ignore[arg-type]


def test_a_plain_name_is_the_event_and_others_are_marked() -> None:
    found = segments(["get_time", "getZone", "set time", "\u6642\u9593"], {})
    assert found["get_time"] == "get_time"
    assert found["getZone"] == "getzone"
    assert found["set time"].startswith("set_time_")
    assert found["\u6642\u9593"].startswith("tool_")


@given(st.sets(UPSTREAM_TOOLS | FEW, max_size=12))
def test_every_tool_has_an_event_of_its_own(tools: set[str]) -> None:
    found = segments(tools, {})
    assert found.keys() == tools
    assert len(set(found.values())) == len(tools)
    for segment in found.values():
        assert parse_event_name(upstream_event("a" * 32, segment))


@given(st.sets(UPSTREAM_TOOLS | FEW, max_size=8), st.sets(UPSTREAM_TOOLS | FEW, max_size=8))
def test_a_new_tool_never_takes_the_event_of_a_known_one(old: set[str], new: set[str]) -> None:
    before = segments(old, {})
    after = segments(old | new, before)
    assert {tool: after[tool] for tool in before} == before
    assert len(set(after.values())) == len(after)


def test_the_order_of_a_list_does_not_matter() -> None:
    assert segments(["get", "GET"], {}) == segments(["GET", "get"], {})


@pytest.mark.parametrize(
    ("tool", "effect"),
    [
        pytest.param(UpstreamTool(name="get"), "destructive", id="nothing-said"),
        pytest.param(UpstreamTool(name="x", annotations={"readOnlyHint": True}), "read", id="read"),
        pytest.param(
            UpstreamTool(name="x", annotations={"readOnlyHint": "yes"}), "destructive", id="no-flag"
        ),
        pytest.param(
            UpstreamTool(name="x", annotations={"destructiveHint": False}), "write", id="write"
        ),
        pytest.param(UpstreamTool(name="say_a"), "write", id="a-pattern"),
        pytest.param(UpstreamTool(name="say_all"), "read", id="the-longest-pattern"),
        pytest.param(
            UpstreamTool(name="say_all_b", annotations={"readOnlyHint": True}),
            "destructive",
            id="the-exact-name",
        ),
    ],
)
def test_the_operator_says_what_a_tool_does_before_the_tool_does(
    tool: UpstreamTool, effect: str
) -> None:
    said = {"say_*": "write", "say_al*": "read", "say_all_b": "destructive"}
    assert effect_of(upstream(effects=said), tool) == effect


@pytest.mark.parametrize(
    ("tool", "let_in"),
    [("get_a", True), ("get_b", False), ("put", True), ("putter", False), ("other", False)],
)
def test_what_is_excluded_is_kept_out_even_when_it_is_included(tool: str, *, let_in: bool) -> None:
    chosen = upstream(include=("get_*", "put"), exclude=("get_b*",))
    assert is_let_in(chosen, tool) is let_in


def test_nothing_invisible_is_said_of_a_tool() -> None:
    hidden = "\n\n  Tells\u200b the\u202e time\ufe0f\U000e0041 \x1b[31mnow\nand more"
    spec = upstream_spec(upstream(), UpstreamTool(name="now", description=hidden), "now")
    assert spec.summary == "Tells the time [31mnow"
    assert (spec.capability, spec.content, spec.open_world) == (None, True, True)


@given(st.text(max_size=300))
def test_one_line_of_any_text_can_be_shown(text: str) -> None:
    shown = visible(text, 50)
    assert len(shown) <= 50
    assert shown.isprintable()
