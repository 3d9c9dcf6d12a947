"""Which capabilities give anything, and what people see of them."""

import pytest

from remit.errors import Place
from remit.model.capability import STATUSES, Capability, Status


@pytest.mark.parametrize("status", STATUSES)
def test_only_available_and_deprecated_capabilities_grant(status: Status) -> None:
    definition = Capability(id="x", place=Place("c.yaml"), status=status)
    assert definition.is_grantable == (status in {"available", "deprecated"})


def test_a_capability_without_a_name_is_shown_by_its_id() -> None:
    assert Capability(id="state_read", place=Place("c")).display_name == "State read"
    assert Capability(id="state_read", place=Place("c"), name="Reading").display_name == "Reading"
