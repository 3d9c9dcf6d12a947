"""What mutants of `universe` got away with: an old name stands for one event only."""

import pytest
from tests.policy.texts import compiled, event, universe_of

from remit.model.names import EventPattern, parse_event_name
from remit.policy.decide import decide

EVENTS = [event("state:get", aliases=("state:read",)), event("state:get_all")]
TEXT = 'capabilities:\n  all:\n    description: d\n    event_patterns: ["state:*"]\n'


def test_an_old_name_becomes_the_present_name_and_no_prefix() -> None:
    found = universe_of(EVENTS).present(EventPattern.parse("state:read"))
    assert found == EventPattern.parse("state:get")
    assert not found.covers(parse_event_name("state:get_all"))


def test_a_denial_by_an_old_name_denies_no_event_whose_name_only_starts_alike() -> None:
    profile = "name: p\ncapabilities: [all]\ndisallowed_tools: [state:read]"
    grant = compiled(TEXT, profile, events=EVENTS).grants["p"]
    assert decide(grant, "state:get") == "explicit_deny"
    assert decide(grant, "state:get_all") == "granted"
    assert decide(grant, "state:get_nothing") == "no_grant"


@pytest.mark.parametrize("count", [1, 2, 12, 13, 16, 17, 32, 33, 64, 65, 200])
def test_a_set_of_any_size_is_told_by_its_own_names_and_no_others(count: int) -> None:
    universe = universe_of(f"space:e{number:04}" for number in range(401))
    chosen = list(universe.names[1 : 2 * count : 2])
    assert universe.names_in(universe.bits_of(chosen)) == chosen
