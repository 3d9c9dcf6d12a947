"""What is wrong with a profile, and what is merely worth saying about it."""

import itertools

import pytest
from tests.fakes import texts
from tests.policy.texts import (
    CAPABILITIES,
    EVENTS,
    compiled,
    event,
    granted,
    refused,
    told,
    underlined,
)

from remit.errors import DefinitionError
from remit.kernel.authority.revision import compile_files
from remit.model.event import EventSpec, make_universe
from remit.model.grant import Grant
from remit.model.names import parse_event_name
from remit.policy.compile import resolve
from remit.policy.lint import lint
from remit.policy.plan import compare, plan
from remit.policy.resolve import grant_everything


def test_a_denied_requirement_is_told_at_the_denial() -> None:
    grant = granted("name: p\ncapabilities: [state_write]\ndisallowed_tools: [state:get]")
    (warning,) = grant.warnings
    assert told([warning]) == ["p0.yaml:3:20 broken_requirement"]
    assert warning.message == "state_write is granted but state:get, which it requires, is denied"
    assert warning.hint == "allow state:get, or switch state_write off"


def test_each_denied_event_of_a_requirement_is_told() -> None:
    profile = "{name: p, capabilities: [state_write], disallowed_tools: [state:get, state:list]}"
    grant = granted(profile)
    assert len(grant.warnings) == 2


def test_a_denial_of_both_sides_breaks_nothing() -> None:
    grant = granted('{name: p, capabilities: [state_write], disallowed_tools: ["state:*"]}')
    assert grant.warnings == ()


def test_a_denial_that_no_requirement_needs_is_fine() -> None:
    assert (
        granted("{name: p, capabilities: [state_write], disallowed_tools: [state:set]}").warnings
        == ()
    )


def test_a_requirement_taken_by_its_old_name_is_told() -> None:
    text = """
capabilities:
  read: {description: x, event_patterns: [state:get]}
  write: {description: x, event_patterns: [state:set], requires: [read]}
"""
    events = (event("state:get", aliases=("store:read",)), "state:set")
    profile = "name: p\ncapabilities: [write]\ndisallowed_tools: [store:read]"
    codes = {warning.code for warning in compiled(text, profile, events=events).warnings}
    assert codes == {"broken_requirement", "old_name"}


def test_warnings_of_all_profiles_are_in_the_catalogue_in_order() -> None:
    catalogue = compiled(
        "capabilities:\n  a: {description: x, event_patterns: [no:such]}",
        "name: q\nadditional_tools: [state:gett]",
        "name: p\nadditional_tools: [agent:spwan]",
    )
    assert told(catalogue.warnings) == [
        "capabilities.yaml:2:40 dead_pattern",
        "p0.yaml:2:20 dead_pattern",
        "p1.yaml:2:20 dead_pattern",
    ]


PARENT = "name: parent\nexposure: all\npinned: [state:get]\n"
MIXIN = "name: mixin\nexposure: turn\npinned: ['message:*']\n"
QUIET = "name: quiet\nexposure: discovered\n"
HOLDS = "capabilities: [state_read, messaging]\n"
SEARCH = "discovery:discover"


def of_p(*profiles: str) -> Grant:
    return compiled(CAPABILITIES, *profiles).grants["p"]


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        pytest.param("", "all", id="nobody-says"),
        pytest.param("extends: quiet", "discovered", id="a-parent"),
        pytest.param("extends: quiet\nmixins: [mixin]", "turn", id="a-mixin-over-a-parent"),
        pytest.param("extends: quiet\nexposure: all", "all", id="its-own-all-over-a-parent"),
        pytest.param("mixins: [mixin]\nexposure: discovered", "discovered", id="its-own"),
    ],
)
def test_the_nearest_word_counts(text: str, mode: str) -> None:
    assert of_p(PARENT, MIXIN, QUIET, f"name: p\n{text}\n").exposure == mode


def test_among_equals_the_one_that_shows_least_counts_in_any_order() -> None:
    for order in itertools.permutations(["parent", "mixin", "quiet"]):
        listed = ", ".join(order)
        assert (
            of_p(PARENT, MIXIN, QUIET, f"name: p\nextends: [{listed}]\n").exposure == "discovered"
        )
        assert of_p(PARENT, MIXIN, QUIET, f"name: p\nmixins: [{listed}]\n").exposure == "discovered"
    two = "name: p\nextends: [parent, mixin]\n"
    assert of_p(PARENT, MIXIN, two).exposure == "turn"


def test_a_component_may_say_it_under_a_condition() -> None:
    text = """name: p
variables: {team: {default: core, allowed_values: [core, docs]}}
capabilities: [state_read]
components:
  - {name: exposure, inline: discovered, when: {team: docs}}
  - {name: pinned, inline: ["state:*"], when: {team: docs}}
"""
    catalogue = compiled(CAPABILITIES, text)
    plain, docs = catalogue.grants["p"], resolve(catalogue, "p", variables={"team": "docs"})
    assert (plain.exposure, plain.pinned) == ("all", frozenset())
    assert docs.exposure == "discovered"
    assert docs.pinned == {"state:get", "state:list"}


def test_pins_of_all_that_a_profile_builds_on_add_up() -> None:
    grant = of_p(
        PARENT, MIXIN, f"name: p\nextends: parent\nmixins: mixin\n{HOLDS}pinned: state:list\n"
    )
    assert grant.pinned == {"state:get", "state:list", "message:publish"}


def test_a_pin_gives_nothing_and_shows_nothing_that_is_hidden() -> None:
    hidden = CAPABILITIES.replace("state_read:", "state_read:\n    mcp_tools: false")
    text = "name: p\ncapabilities: [state_read]\ndisallowed_tools: [system:health]\npinned: ['*']\n"
    grant = compiled(hidden, text).grants["p"]
    assert grant.events == {"state:get", "state:list"}
    assert grant.pinned == grant.exposed == frozenset()


def test_a_pin_reaches_events_that_must_be_named_and_goes_by_old_names() -> None:
    text = "capabilities: {k: {description: d, event_patterns: [a:key, a:new]}}"
    events = [event("a:key", wildcard=False), event("a:new", aliases=("a:old",))]
    for pin, found in (("a:k*", {"a:key"}), ("a:old", {"a:new"}), ("a:*", {"a:key", "a:new"})):
        profile = f"{{name: p, capabilities: [k], pinned: ['{pin}']}}"
        assert compiled(text, profile, events=events).grants["p"].pinned == found


def test_a_variable_in_a_pin_is_as_tame_as_in_a_tool_list() -> None:
    head = "name: p\nvariables: {x: {default: get}}\ncapabilities: [state_read]\n"
    text = f"{head}pinned: ['state:{{{{x}}}}']\n"
    catalogue = compiled(CAPABILITIES, text)
    assert catalogue.grants["p"].pinned == {"state:get"}
    wrong = text.replace("default: get", "default: '*'")
    assert told(refused(CAPABILITIES, wrong)) == ["p0.yaml:4:10 unsafe_value"]


def test_mistakes_are_errors_at_their_place() -> None:
    assert told(refused(CAPABILITIES, "name: p\nexposure: some\n")) == [
        "p0.yaml:2:11 unknown_value"
    ]
    assert told(refused(CAPABILITIES, "name: p\npinned: ['a*b:c']\n")) == [
        "p0.yaml:2:10 invalid_pattern"
    ]


def test_an_event_that_is_only_pushed_is_no_tool_and_cannot_be_pinned() -> None:
    text = "capabilities: {k: {description: d, event_patterns: ['a:*']}}"
    events = [event("a:call"), event("a:push", pushed=True)]
    catalogue = compiled(text, "{name: p, capabilities: [k], pinned: ['a:*']}", events=events)
    grant = catalogue.grants["p"]
    assert grant.events == {"a:call", "a:push"}
    assert grant.exposed == grant.pinned == grant_everything(catalogue).exposed == {"a:call"}


# ---- what is worth saying ----


def warnings(text: str) -> list[str]:
    grant = granted(f"name: p\n{text}")
    return [f"{w.place.line}:{w.place.column} {w.code}" for w in grant.warnings]


@pytest.mark.parametrize("mode", ["discovered", "turn"])
def test_a_profile_that_cannot_search_is_warned_of_with_the_repair(mode: str) -> None:
    catalogue = compiled(CAPABILITIES, f"name: p\nexposure: {mode}\n")
    (finding,) = lint(catalogue)["exposure_mistakes"]
    assert (finding["name"], finding["file"], finding["line"]) == (mode, "p0.yaml", 2)
    assert SEARCH in finding["hint"]
    assert "exposure: all" in finding["hint"]
    events = [*EVENTS, SEARCH]
    able = f"name: p\nexposure: {mode}\nadditional_tools: [{SEARCH}]\n"
    assert lint(compiled(CAPABILITIES, able, events=events))["exposure_mistakes"] == []


def test_where_everything_is_listed_nobody_needs_to_search() -> None:
    assert warnings("exposure: all\n") == []


def test_a_pin_that_lists_nothing_is_warned_of() -> None:
    found = warnings("capabilities: [state_read]\npinned: [state:get, state:set, stat:get, Bash]\n")
    assert found == ["3:21 dead_pin", "3:32 dead_pattern", "3:42 dead_pin"]


def test_lint_tells_dead_pins_under_their_kind() -> None:
    text = "name: p\ncapabilities: [state_read]\npinned: [state:set, stat:get]\n"
    report = lint(compiled(CAPABILITIES, text))
    assert [one["name"] for one in report["exposure_mistakes"]] == ["state:set"]
    assert [one["name"] for one in report["dead_patterns"]] == ["stat:get"]


# ---- what a change means ----


def change(before: str, after: str) -> tuple[Grant, Grant]:
    return granted(f"name: p\n{HOLDS}{before}"), granted(f"name: p\n{HOLDS}{after}")


def test_another_exposure_is_told_and_widens_nothing() -> None:
    one, other = change("", "exposure: discovered\n")
    found = compare(one, other)
    assert found.exposure_changed == ("all", "discovered")
    assert not found.widens
    assert not found.granted + found.tools_shown + found.tools_hidden


def test_a_pin_is_told_to_a_holder_only_where_it_changes_a_list() -> None:
    one, other = change("", "pinned: [state:get]\n")
    assert compare(one, other).is_empty
    assert plan({"p": one}, {"p": other}).changes["p"].pinned_added == ("state:get",)
    one, other = change("exposure: turn\n", "exposure: turn\npinned: [state:get]\n")
    assert compare(one, other).pinned_added == ("state:get",)
    assert compare(other, one).pinned_removed == ("state:get",)


def test_what_becomes_a_tool_or_ceases_to_be_one_is_told_though_it_is_held_all_the_time() -> None:
    text = "name: p\ncapabilities: [state_read]\n"
    hidden = CAPABILITIES.replace("state_read:", "state_read:\n    mcp_tools: false")
    one, other = granted(text), granted(text, capabilities=hidden)
    found = compare(one, other)
    assert (found.tools_hidden, found.revoked) == (("state:get", "state:list"), ())
    assert compare(other, one).tools_shown == ("state:get", "state:list")


def test_a_tool_that_is_described_otherwise_is_told_to_those_who_have_it() -> None:
    one, other = change("", "")
    altered = frozenset({"state:get", "web:fetch"})
    assert compare(one, other, altered).tools_changed == ("state:get",)
    assert compare(one, other).is_empty


def test_a_new_holder_is_told_of_no_change_of_exposure() -> None:
    _, grant = change("", "exposure: turn\n")
    nobody = Grant(profile="", revision=0, bits=0, events=frozenset())
    assert compare(nobody, grant).exposure_changed == ()


CAPS = """
capabilities:
  plain: {description: a, event_patterns: [state:get]}
  loose: {description: b, event_patterns: [state:list], config_schema: {type: object}}
  tuned:
    description: c
    event_patterns: [state:set]
    config_schema: {type: object, required: [level], properties: {level: {type: integer}}}
    aliases: [old_tuned]
  strict:
    description: d
    event_patterns: [state:delete]
    config_schema: {minProperties: 1}
  above: {description: e, requires: [tuned]}
"""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("capabilities: [tuned]", "p0.yaml:2:16 missing_config", id="named-alone"),
        pytest.param("capabilities: {tuned: true}", "p0.yaml:2:16 missing_config", id="a-flag"),
        pytest.param("capabilities: [old_tuned]", "p0.yaml:2:16 missing_config", id="an-old-name"),
        pytest.param("capabilities: [{ref: tuned}]", "p0.yaml:2:22 missing_config", id="an-entry"),
        pytest.param(
            "capabilities: [{ref: tuned, config: {}}]", "p0.yaml:2:22 missing_config", id="empty"
        ),
        pytest.param(
            "capabilities: [{ref: tuned, config: {levle: 1}}]",
            "p0.yaml:2:37 invalid_config",
            id="a-typo",
        ),
        pytest.param("capabilities: [strict]", "p0.yaml:2:16 missing_config", id="another-rule"),
        pytest.param("capabilities: [above]", "p0.yaml:2:16 missing_config", id="required-by-it"),
        pytest.param(
            "capabilities: [{ref: plain, config: {x: 1}}]",
            "p0.yaml:2:37 invalid_config",
            id="without-a-schema",
        ),
        pytest.param(
            "components: [{name: capabilities, inline: [tuned]}]",
            "p0.yaml:2:44 missing_config",
            id="in-a-component",
        ),
    ],
)
def test_it_is_an_error_at_its_place(text: str, problem: str) -> None:
    assert told(refused(CAPS, f"name: p\n{text}\n")) == [problem]


def test_the_error_says_what_is_missing_and_how_to_write_it() -> None:
    (problem,) = refused(CAPS, "name: p\ncapabilities: [above]\n")
    assert problem.message == (
        "'tuned', which 'above' requires, needs a configuration: \"level\" is a required property"
    )
    assert "{ref: tuned, config: {…}}" in problem.hint
    assert underlined(problem) == "above"


@pytest.mark.parametrize(
    "text",
    [
        "capabilities: [loose, {ref: plain, config: {}}]",
        "capabilities: [{ref: tuned, config: {level: 1}}, above]",
        "capabilities: {tuned: false}",
        "capabilities: [{ref: strict, config: {x: 1}}]",
    ],
)
def test_what_is_given_or_not_needed_is_fine(text: str) -> None:
    granted(f"name: p\n{text}\n", capabilities=CAPS)


def test_a_child_that_loses_the_configuration_of_its_parent_is_refused() -> None:
    a = "{name: a, capabilities: [{ref: tuned, config: {level: 1}}]}"
    compiled(CAPS, a, "{name: b, extends: a, capabilities: [tuned]}")
    off = "{name: b, extends: a, capabilities: {tuned: false}}"
    found = refused(CAPS, a, off, "{name: c, extends: b, capabilities: [tuned]}")
    assert told(found) == ["p2.yaml:1:38 missing_config"]


CATALOGUE = "  notes:\n    description: x\n    event_patterns: ['state:get']\n"
UNIVERSE = make_universe([EventSpec(name=parse_event_name("state:get"))])


@pytest.mark.parametrize("pattern", ["mcp:time:now", "mcp:time:*", "mcp:*"])
@pytest.mark.parametrize("key", ["disallowed_tools", "approval_required"])
def test_a_rule_about_an_outside_tool_that_is_gone_is_a_warning(key: str, pattern: str) -> None:
    profile = f'capabilities: [notes]\n{key}: ["{pattern}"]\n'
    catalogue = compile_files(texts(CATALOGUE, careful=profile), UNIVERSE).catalogue
    [warning] = catalogue.warnings
    assert warning.code in ("dead_denial", "dead_approval")
    assert warning.place.file.endswith("careful.yaml")
    assert pattern in warning.message


@pytest.mark.parametrize("pattern", ["mcpx:time:now", "stat:get"])
def test_any_other_rule_that_matches_nothing_stays_an_error(pattern: str) -> None:
    profile = f'capabilities: [notes]\ndisallowed_tools: ["{pattern}"]\n'
    with pytest.raises(DefinitionError, match="denies nothing"):
        compile_files(texts(CATALOGUE, careful=profile), UNIVERSE)
