"""What a profile says once all it builds on is merged: its flags and its launcher."""

import itertools

import pytest
from tests.policy.texts import CAPABILITIES, compiled, granted, own, refused, told

from remit.config.definitions.launchers import Commands, launcher_warnings
from remit.model.launch import Launch
from remit.policy.compile import resolve
from remit.policy.plan import plan

ON = "{name: on, capabilities: {state_read: true}}"
OFF = "{name: off, capabilities: {state_read: false}}"
READ = {"state:get", "state:list"}
OLD_NAMES = CAPABILITIES.replace(
    "description: Read shared state", "description: Read shared state\n    aliases: [old_read]"
)


def test_a_flag_switches_a_capability_on() -> None:
    assert own(granted(ON)) == READ


@pytest.mark.parametrize("key", ["extends", "mixins"])
def test_false_removes_an_inherited_capability(key: str) -> None:
    assert (
        own(granted(ON, f"{{name: p, {key}: [on], capabilities: {{state_read: false}}}}")) == set()
    )


@pytest.mark.parametrize("key", ["extends", "mixins"])
def test_an_own_true_overrules_an_inherited_false(key: str) -> None:
    assert (
        own(granted(OFF, f"{{name: p, {key}: [off], capabilities: {{state_read: true}}}}")) == READ
    )


@pytest.mark.parametrize("order", ["[on, off]", "[off, on]"])
@pytest.mark.parametrize("key", ["extends", "mixins"])
def test_among_equals_off_beats_on(order: str, key: str) -> None:
    assert own(granted(ON, OFF, f"{{name: p, {key}: {order}}}")) == set()


def test_among_the_components_of_one_profile_off_beats_on() -> None:
    components = [
        "- {name: capabilities, inline: {state_read: false}}",
        "- {name: capabilities, inline: {state_read: true}}",
    ]
    for lines in (components, components[::-1]):
        assert own(granted("name: p\ncomponents:\n" + "\n".join(lines))) == set()


def test_a_mixin_overrules_a_parent() -> None:
    assert own(granted(ON, OFF, "{name: p, extends: on, mixins: [off]}")) == set()
    assert own(granted(ON, OFF, "{name: p, extends: off, mixins: [on]}")) == READ


def test_the_nearest_ancestor_decides() -> None:
    child = "{name: c, extends: on, capabilities: {state_read: false}}"
    assert own(granted(ON, child, "{name: p, extends: c}")) == set()
    grandchild = "{name: p, extends: c, capabilities: {state_read: true}}"
    assert own(granted(ON, child, grandchild)) == READ


def test_switching_off_what_another_requires_has_no_effect_and_is_said() -> None:
    grant = granted("name: p\ncapabilities:\n  state_write: true\n  state_read: false")
    assert own(grant) > READ
    assert told(grant.warnings) == ["p0.yaml:4:3 flag_without_effect"]


def test_switching_off_the_base_has_no_effect_and_is_said() -> None:
    grant = granted("name: p\ncapabilities: {base: false}")
    assert "system:health" in grant.events
    assert told(grant.warnings) == ["p0.yaml:2:16 flag_without_effect"]


CONFIGURED = CAPABILITIES.replace(
    "Read shared state", "Read shared state\n    config_schema: {type: object}"
)


def test_the_list_form_means_the_same() -> None:
    assert own(granted("{name: p, capabilities: [state_read]}")) == READ
    text = "{name: p, capabilities: [base, {ref: state_read, config: {deep: [1]}}]}"
    configured = granted(text, capabilities=CONFIGURED)
    assert own(configured) == READ
    assert configured.config == {"state_read": {"deep": [1]}}


def test_a_configuration_without_its_capability_is_gone() -> None:
    parent = "{name: a, capabilities: [{ref: state_read, config: {deep: 1}}]}"
    child = "{name: p, extends: a, capabilities: {state_read: false}}"
    assert granted(parent, child, capabilities=CONFIGURED).config == {}


@pytest.mark.parametrize(
    ("child", "config"),
    [
        pytest.param("extends: a, capabilities: {state_read: true}", {"deep": 1}, id="extends"),
        pytest.param("mixins: a, capabilities: [state_read]", {"deep": 1}, id="a-mixin"),
        pytest.param(
            "extends: a, capabilities: [{ref: state_read, config: {deep: 2}}]",
            {"deep": 2},
            id="its-own",
        ),
        pytest.param("extends: [a, b]", {"deep": 1}, id="beside-one-without"),
    ],
)
def test_who_says_nothing_of_a_configuration_keeps_the_inherited_one(
    child: str, config: dict[str, int]
) -> None:
    parent = "{name: a, capabilities: [{ref: state_read, config: {deep: 1}}]}"
    other = "{name: b, capabilities: [state_read]}"
    grant = granted(parent, other, f"{{name: p, {child}}}", capabilities=CONFIGURED)
    assert grant.config == {"state_read": config}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("name: p\ncapabilities: {state_raed: true}", "p0.yaml:2:16"),
        ("name: p\ncapabilities: {state_raed: false}", "p0.yaml:2:16"),
        ("name: p\ncapabilities: [state_raed]", "p0.yaml:2:16"),
        ("name: p\ncapabilities:\n- ref: state_raed", "p0.yaml:3:8"),
        ("name: p\ncomponents:\n- name: capabilities\n  inline: [state_raed]", "p0.yaml:4:12"),
    ],
)
def test_a_typo_in_a_flag_is_refused_with_place_and_suggestion(text: str, place: str) -> None:
    problems = refused(CAPABILITIES, text)
    assert told(problems) == [f"{place} unknown_capability"]
    assert problems[0].hint == "did you mean 'state_read'?"


def test_an_old_name_works_and_is_told() -> None:
    grant = compiled(OLD_NAMES, "name: p\ncapabilities: [old_read]").grants["p"]
    assert own(grant) == READ
    assert grant.capabilities == ("base", "state_read")


def test_a_warning_names_the_present_name_of_an_old_one() -> None:
    catalogue = compiled(OLD_NAMES, "name: p\ncapabilities: [old_read]")
    assert told(catalogue.warnings) == ["p0.yaml:2:16 old_name"]
    assert catalogue.warnings[0].hint == "write 'state_read'"


def test_a_flag_overrules_another_whichever_name_it_is_written_by() -> None:
    off = "{name: off, capabilities: {old_read: false}}"
    on = "{name: p, extends: off, capabilities: {state_read: true}}"
    assert own(compiled(OLD_NAMES, off, on).grants["p"]) == READ
    again_off = "{name: q, extends: p, capabilities: {old_read: false}}"
    assert own(compiled(OLD_NAMES, off, on, again_off).grants["q"]) == set()


def test_two_names_of_one_capability_in_one_profile_are_cautious() -> None:
    text = "{name: p, capabilities: {old_read: true, state_read: false}}"
    assert own(compiled(OLD_NAMES, text).grants["p"]) == set()


def test_an_old_name_never_takes_over_a_defined_one() -> None:
    text = OLD_NAMES.replace("[old_read]", "[state_write]")
    problems = refused(text)
    assert [problem.code for problem in problems] == ["name_conflict"]


def test_two_capabilities_cannot_have_one_old_name() -> None:
    text = OLD_NAMES.replace("description: Talk", "replaces: [old_read]\n    description: Talk")
    assert [problem.code for problem in refused(text)] == ["name_conflict"]


PARENT = "name: parent\nlauncher: {command: low, args: [a]}\n"
MIXIN = "name: mixin\nlauncher: {command: mid}\n"
QUIET = "name: quiet\nlauncher: none\n"


def started(*profiles: str) -> Launch | None:
    """What the profile `p` starts."""
    launcher = compiled(CAPABILITIES, *profiles).grants["p"].launcher
    return None if launcher is None else launcher.launch


@pytest.mark.parametrize(
    ("text", "command"),
    [
        pytest.param("extends: parent", "low", id="a-parent"),
        pytest.param("extends: parent\nmixins: [mixin]", "mid", id="a-mixin-over-a-parent"),
        pytest.param("extends: parent\nlauncher: {command: top}", "top", id="its-own"),
        pytest.param("mixins: [mixin]\nlauncher: none", "", id="its-own-none"),
        pytest.param("extends: quiet\nmixins: [mixin]", "mid", id="over-a-none"),
        pytest.param("extends: [parent, quiet]", "", id="none-among-equals"),
    ],
)
def test_the_nearest_launcher_counts_as_a_whole(text: str, command: str) -> None:
    launch = started(PARENT, MIXIN, QUIET, f"name: p\n{text}\n")
    assert launch is not None
    assert launch.starts == command
    assert launch.args == (("a",) if command == "low" else ())


def test_a_profile_without_one_starts_nothing() -> None:
    assert started("name: p\n") is None


def test_the_order_of_equals_does_not_matter() -> None:
    texts = [PARENT, MIXIN, "name: other\nlauncher: claude\n"]
    for order in itertools.permutations(["parent", "mixin", "other"]):
        launch = started(*texts, f"name: p\nextends: [{', '.join(order)}]\n")
        assert launch is not None
        assert launch.command == "low"


def test_a_component_may_have_a_condition() -> None:
    text = """name: p
variables: {team: {default: core, allowed_values: [core, docs]}}
components:
  - {name: launcher, inline: claude, when: {team: docs}}
"""
    catalogue = compiled(CAPABILITIES, text)
    assert catalogue.grants["p"].launcher is None
    launcher = resolve(catalogue, "p", variables={"team": "docs"}).launcher
    assert launcher is not None
    assert launcher.launch == Launch(ready="claude")


def test_variables_fill_arguments_environment_and_folder() -> None:
    text = """name: p
variables: {team: {default: core}}
launcher: {command: x, args: ["--team={{team}}"], env: {T: "{{team}}"}, cwd: "/srv/{{team}}"}
"""
    launcher = resolve(compiled(CAPABILITIES, text), "p", variables={"team": "a *:b"}).launcher
    assert launcher is not None
    launch = launcher.launch
    assert (launch.args, launch.env, launch.cwd) == (
        ("--team=a *:b",),
        {"T": "a *:b"},
        "/srv/a *:b",
    )


def test_an_unknown_variable_is_an_error_at_its_place() -> None:
    text = 'name: p\nlauncher: {command: x, args: [a, "{{team}}"]}\n'
    assert told(refused(CAPABILITIES, text)) == ["p0.yaml:2:34 unknown_variable"]


def test_a_launcher_that_many_inherit_is_warned_of_once() -> None:
    children = (f"name: c{number}\nextends: parent\n" for number in range(3))
    catalogue = compiled(CAPABILITIES, PARENT, *children, QUIET)
    (warning,) = launcher_warnings(catalogue, Commands([]))
    assert (str(warning.place), warning.severity) == ("p0.yaml:2:11", "warning")
    assert "launch_commands" in warning.hint


def test_a_plan_shows_what_would_be_started_instead_and_no_value_of_a_variable() -> None:
    before = compiled(CAPABILITIES, PARENT, MIXIN, "name: gone\nlauncher: claude\n")
    edited = "name: parent\nlauncher: {ready: claude, env: {TOKEN: hidden}}\n"
    after = compiled(CAPABILITIES, edited, MIXIN)
    changes = plan(before.grants, after.grants).changes
    assert sorted(changes) == ["gone", "parent"]
    low = {"command": "low", "args": ("a",), "restart": "never", "max_restarts": 5}
    new = {"ready": "claude", "env": ["TOKEN"], "restart": "never", "max_restarts": 5}
    assert changes["parent"].launcher_changed == (low, new)
    assert changes["gone"].launcher_changed[1] is None
    assert not changes["parent"].widens
