"""The effect of an event: what is not stated never qualifies."""

import pytest

from remit.model.event import EventSpec, effect_at_most
from remit.model.limits import EFFECTS, Effect
from remit.model.names import parse_event_name

NAME = parse_event_name("state:get")


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("ceiling", EFFECTS)
def test_an_effect_passes_a_ceiling_that_is_not_below_it(effect: Effect, ceiling: Effect) -> None:
    order = ["read", "write", "destructive"]
    passes = order.index(effect) <= order.index(ceiling)
    assert effect_at_most(EventSpec(name=NAME, effect=effect), ceiling) == passes


@pytest.mark.parametrize("ceiling", EFFECTS)
def test_an_unknown_effect_passes_no_ceiling(ceiling: Effect) -> None:
    assert not effect_at_most(EventSpec(name=NAME), ceiling)
