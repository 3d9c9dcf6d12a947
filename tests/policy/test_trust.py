"""`trust`: whose use of tools teaches everybody. Only its own file says so of a profile."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes import texts
from tests.family import Family
from tests.policy.catalogues import World, compile_world, worlds
from tests.policy.texts import CAPABILITIES, granted, refused, told

from remit.policy.decide import confine
from remit.policy.plan import compare, plan

TEACHER = "{name: teacher, trust: true, capabilities: [state_read]}"


def test_a_profile_is_trusted_only_when_its_own_file_says_so() -> None:
    assert granted(TEACHER).trusted
    assert not granted("{name: p}").trusted
    assert not granted(TEACHER, "{name: p, trust: false}").trusted
    assert not granted(TEACHER, "{name: p, extends: teacher}").trusted
    assert not granted(TEACHER, "{name: p, mixins: [teacher]}").trusted
    assert granted(TEACHER, "{name: p, extends: teacher, trust: true}").trusted


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("trust: [true]", "p0.yaml:2:8 wrong_type", id="a-list"),
        pytest.param("trust: high", "p0.yaml:2:8 wrong_type", id="a-word"),
        pytest.param("trusted: true", "p0.yaml:2:1 unknown_key", id="misspelt"),
        pytest.param(
            "components: [{name: trust, inline: true}]", "p0.yaml:2:21 unknown_value", id="a-part"
        ),
    ],
)
def test_what_is_not_understood_is_an_error_at_its_place(text: str, problem: str) -> None:
    assert told(refused(CAPABILITIES, f"name: p\n{text}\n"))[0] == problem


def test_a_plan_shows_trust_as_something_that_widens() -> None:
    one, other = granted("{name: p}"), granted("{name: p, trust: true}")
    gains = plan({"p": one}, {"p": other})
    assert gains.changes["p"].trust_changed == (False, True)
    assert gains.widens
    losses = plan({"p": other}, {"p": one})
    assert losses.changes["p"].trust_changed == (True, False)
    assert not losses.widens
    assert plan({}, {"p": other}).changes["p"].trust_changed == (False, True)
    assert compare(one, other).is_empty  # its holders are told nothing: it gives them nothing


@given(world=worlds(), own=st.booleans(), above=st.booleans())
def test_nobody_is_trusted_below_somebody_who_is_not(
    world: World, *, own: bool, above: bool
) -> None:
    catalogue = compile_world(world)
    for one in catalogue.grants.values():
        child = msgspec.structs.replace(one, trusted=own)
        for other in catalogue.grants.values():
            ceiling = msgspec.structs.replace(other, trusted=above)
            assert confine(catalogue, child, ceiling).trusted == (own and above)


FILES = texts(
    """
  work: {description: w, always_included: true, event_patterns: ["agent:*", "discovery:*"]}
""",
    teacher="trust: true",
    user="capabilities: []",
)


async def test_an_agent_is_trusted_when_it_and_all_above_it_are() -> None:
    family = Family(FILES)
    await family.client("tina", "teacher")
    await family.client("ulf", "user")
    await family.spawn("tina", "tina2", "teacher")
    await family.spawn("tina", "tina3", "user")
    await family.spawn("tina3", "tina4", "teacher")
    await family.spawn("ulf", "ulf2", "teacher")
    await family.spawn("tina", "heir", inherit=True)
    authority = family.authority
    trusted = {
        name
        for name in ("tina", "tina2", "tina3", "tina4", "ulf", "ulf2", "heir")
        if authority.grant(family.principal(name)).trusted
    }
    assert trusted == {"tina", "tina2", "heir"}
    shown = await family.ask("operator", "composition:resolve", {"profile": "teacher"})
    assert shown["trust"] is True
