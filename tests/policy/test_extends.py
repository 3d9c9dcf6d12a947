"""Extends and mixins: merging, circles, unknown names, long chains."""

import pytest
from tests.policy.texts import CAPABILITIES, compiled, granted, own, refused, told

READER = "{name: reader, capabilities: [state_read]}"
TALKER = "{name: talker, capabilities: [messaging]}"
READ = {"state:get", "state:list"}
TALK = {"message:publish", "agent:send_message"}


def ring(length: int, key: str) -> list[str]:
    return [f"name: p{at}\n{key}: [p{(at + 1) % length}]" for at in range(length)]


@pytest.mark.parametrize("key", ["extends", "mixins"])
def test_a_profile_gets_what_it_builds_on(key: str) -> None:
    assert own(granted(READER, f"{{name: p, {key}: reader}}")) == READ
    assert own(granted(READER, TALKER, f"{{name: p, {key}: [reader, talker]}}")) == READ | TALK


def test_parents_and_mixins_go_together() -> None:
    assert (
        own(granted(READER, TALKER, "{name: p, extends: reader, mixins: [talker]}")) == READ | TALK
    )


def test_a_diamond_is_no_circle() -> None:
    left = "{name: left, extends: reader}"
    right = "{name: right, extends: reader, additional_tools: [web:fetch]}"
    text = CAPABILITIES.replace("security_review_required: true", "security_review_required: false")
    grant = granted(READER, left, right, "{name: p, extends: [left, right]}", capabilities=text)
    assert own(grant) == READ | {"web:fetch"}


def test_a_chain_of_2_000_profiles_is_no_different_from_a_short_one() -> None:
    profiles = [f"{{name: p{at}, extends: p{at + 1}}}" for at in range(1_999)]
    profiles.append("{name: p1999, capabilities: [state_read], disallowed_tools: [state:list]}")
    catalogue = compiled(CAPABILITIES, *profiles)
    assert own(catalogue.grants["p0"]) == {"state:get"}


@pytest.mark.parametrize("length", [1, 2, 50])
@pytest.mark.parametrize("key", ["extends", "mixins"])
def test_a_circle_is_refused_with_the_whole_chain(length: int, key: str) -> None:
    problems = refused(CAPABILITIES, *ring(length, key))
    assert told(problems) == ["p0.yaml:1:7 cycle"]
    members = problems[0].message.removeprefix(f"{key} goes in a circle: ").split(" → ")
    assert members[0] == members[-1] == "p0"
    assert set(members) == {f"p{at}" for at in range(length)}
    assert len(members) == length + 1


def test_a_circle_over_a_parent_and_a_mixin_is_a_circle() -> None:
    problems = refused(CAPABILITIES, "{name: a, extends: b}", "{name: b, mixins: [a]}")
    assert problems[0].message == "extends and mixins goes in a circle: a → b → a"


@pytest.mark.parametrize(
    ("line", "column"),
    [("extends: readr", 10), ("extends: [readr]", 11), ("mixins: [readr]", 10)],
)
def test_an_unknown_profile_is_refused_with_a_suggestion(line: str, column: int) -> None:
    problems = refused(CAPABILITIES, READER, f"name: p\n{line}")
    assert told(problems) == [f"p1.yaml:2:{column} unknown_profile"]
    assert problems[0].hint == "did you mean 'reader'?"


def test_an_unknown_profile_in_a_conditional_mixin_is_refused_even_when_it_does_not_apply() -> None:
    text = """name: p
variables: {deep: {type: boolean, default: false}}
mixins:
  - name: readr
    when: {deep: true}
"""
    assert told(refused(CAPABILITIES, READER, text)) == ["p1.yaml:4:11 unknown_profile"]


def test_two_profiles_of_one_name_are_refused_and_both_places_are_named() -> None:
    problems = refused(CAPABILITIES, READER, READER)
    assert told(problems) == ["p1.yaml:1:8 duplicate_profile"]
    assert "p0.yaml:1:8" in problems[0].message


def test_a_typo_never_becomes_the_minimal_profile() -> None:
    problems = refused(CAPABILITIES, READER, "{name: p, extends: Reader}")
    assert told(problems) == ["p1.yaml:1:20 invalid_name"]


def test_limits_are_the_smallest_of_all_sources() -> None:
    parent = "{name: a, capabilities: [spawning], limits: {max_depth: 9, max_concurrent: 3}}"
    other = "{name: b, limits: {max_children: 4}}"
    child = "{name: p, extends: [a, b], limits: {max_concurrent: 8, max_children: 7}}"
    limits = granted(parent, other, child).limits
    assert limits.to_json() == {"max_children": 4, "max_depth": 2, "max_concurrent": 3}


def test_prompts_are_joined_parents_first() -> None:
    profiles = ("{name: a, prompt: One.}", "{name: m, prompt: Two.}")
    grant = granted(*profiles, "{name: p, extends: a, mixins: [m], prompt: Three.}")
    assert grant.prompt == "One.\n\nTwo.\n\nThree."
