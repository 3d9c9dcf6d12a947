"""How much of the shared state an agent may have: by the settings, and by its own limits."""

import pytest
from tests.fakes import Desk, built_in_handlers, texts

from remit.features.state.events import StateLimits
from remit.features.state.store import StateQuota
from remit_client.wire import Failure

CATALOGUE = """
  base: {description: b, event_patterns: [system:health], always_included: true}
  keep: {description: k, event_patterns: [state:*]}
"""


@pytest.fixture
def desk() -> Desk:
    few = "capabilities: [keep]\nlimits: {max_state_keys: 1}\n"
    desk = Desk(built_in_handlers(), texts(CATALOGUE, usual="capabilities: [keep]\n", few=few))
    desk.kernel.provide(StateLimits(quota=StateQuota(keys=3, bytes=100)))
    return desk


async def refusal(desk: Desk, who: str, key: str, value: str = "x") -> Failure:
    answer = await desk.answer(who, "state:set", {"key": key, "value": value})
    assert answer.error is not None
    return answer.error


async def test_settings_bound_keys_and_bytes_of_each_agent(desk: Desk) -> None:
    for number in range(3):
        await desk.ask("usual", "state:set", {"key": f"k{number}", "value": "x"})
    error = await refusal(desk, "usual", "k3")
    assert (error.code, error.details["limit"]) == ("limit_exceeded", "max_state_keys")
    assert "state:delete" in error.hint
    assert (await refusal(desk, "usual", "k0", "x" * 99)).details["limit"] == "max_state_bytes"
    await desk.ask("usual", "state:delete", {"key": "k0"})
    await desk.ask("usual", "state:set", {"key": "k3", "value": "x"})


async def test_a_limit_of_its_own_is_narrower(desk: Desk) -> None:
    await desk.ask("few", "state:set", {"key": "k0", "value": "x"})
    assert (await refusal(desk, "few", "k1")).details["most"] == 1


async def test_the_operator_has_no_bound(desk: Desk) -> None:
    for number in range(10):
        await desk.ask("operator", "state:set", {"key": f"k{number}", "value": "x" * 50})
