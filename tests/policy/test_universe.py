"""The events of a revision as bits: wildcards, old names, events that must be named."""

from hypothesis import given
from hypothesis import strategies as st
from tests.policy.texts import event, universe_of

from remit.model.names import EventPattern
from remit.policy.universe import universe_of_names

NAMES = st.sets(
    st.from_regex(r"[a-c]{1,2}:[a-c_]{0,1}[a-c]{1,2}", fullmatch=True).filter(
        lambda name: ":_" not in name
    )
)
PREFIXES = st.from_regex(r"[a-c]{1,2}:[a-c]{0,2}", fullmatch=True)


@given(NAMES, PREFIXES)
def test_a_wildcard_expands_to_the_names_that_start_with_its_prefix(
    names: set[str], prefix: str
) -> None:
    universe = universe_of_names(names)
    bits = universe.granted_by(EventPattern(prefix, exact=False))
    assert universe.names_in(bits) == sorted(n for n in names if n.startswith(prefix))


@given(NAMES)
def test_names_and_bits_are_two_forms_of_one_set(names: set[str]) -> None:
    universe = universe_of_names(names)
    assert universe.names_in(universe.everything) == sorted(names)
    assert universe.bits_of(names) == universe.everything
    assert universe.names_in(0) == []
    assert universe.bits_of(["no:such", "nothing"]) == 0


def test_no_wildcard_grants_an_event_that_must_be_named() -> None:
    universe = universe_of([event("state:get"), event("state:wipe", wildcard=False)])
    for text in ("state:*", "state:w*", "state:wipe*", "*"):
        granted = universe.names_in(universe.granted_by(EventPattern.parse(text)))
        assert "state:wipe" not in granted
    named = universe.granted_by(EventPattern.parse("state:wipe"))
    assert universe.names_in(named) == ["state:wipe"]


def test_a_wildcard_denies_also_what_it_could_not_grant() -> None:
    universe = universe_of([event("state:get"), event("state:wipe", wildcard=False)])
    for text in ("state:*", "*"):
        denied = universe.denied_by(EventPattern.parse(text))
        assert universe.names_in(denied) == ["state:get", "state:wipe"]


def test_an_old_name_stands_for_the_present_one() -> None:
    universe = universe_of([event("state:get", aliases=("store:read",)), "store:list"])
    old = EventPattern.parse("store:read")
    assert universe.canonical("store:read") == "state:get"
    assert universe.names_in(universe.granted_by(old)) == ["state:get"]
    assert universe.names_in(universe.denied_by(old)) == ["state:get"]


def test_a_wildcard_grants_no_event_by_its_old_name_but_denies_it() -> None:
    universe = universe_of([event("state:get", aliases=("store:read",)), "store:list"])
    everything_old = EventPattern.parse("store:*")
    assert universe.names_in(universe.granted_by(everything_old)) == ["store:list"]
    assert universe.names_in(universe.denied_by(everything_old)) == ["state:get", "store:list"]
    assert EventPattern.parse("state:get") in universe.denials(everything_old)


def test_an_old_name_never_takes_over_an_event_that_exists() -> None:
    universe = universe_of([event("state:wipe", aliases=("state:get",)), "state:get"])
    assert universe.canonical("state:get") == "state:get"
    bits = universe.granted_by(EventPattern.parse("state:get"))
    assert universe.names_in(bits) == ["state:get"]
