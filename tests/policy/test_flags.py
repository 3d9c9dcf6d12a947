"""Flags: on, off, inherited, overruled, and written by an old name."""

import pytest
from tests.policy.texts import CAPABILITIES, compiled, granted, own, refused, told

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
