"""Decisions and their reasons; the reason never tells which events exist."""

import pytest
from tests.policy.texts import CAPABILITIES, compiled, event, granted

from remit.policy.decide import decide

PROFILE = """
name: p
capabilities: [state_write, network]
disallowed_tools: ["agent:*", state:delete]
"""


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("state:get", "granted"),
        ("state:delete", "explicit_deny"),
        ("agent:spawn", "explicit_deny"),
        ("web:fetch", "review_pending"),
        ("message:publish", "no_grant"),
    ],
)
def test_each_refusal_has_its_reason(name: str, reason: str) -> None:
    assert decide(granted(PROFILE), name) == reason


@pytest.mark.parametrize(
    ("existing", "invented"),
    [("agent:spawn", "agent:nothing"), ("message:publish", "message:nothing")],
)
def test_an_event_that_does_not_exist_is_refused_like_one_that_does(
    existing: str, invented: str
) -> None:
    grant = granted(PROFILE)
    assert decide(grant, existing) == decide(grant, invented)


@pytest.mark.parametrize("name", ["", "*", "state:*", "state:", "State:get", "state:get ", "state"])
def test_only_the_exact_name_is_granted(name: str) -> None:
    assert decide(granted(PROFILE), name) != "granted"


def test_a_pending_wildcard_does_not_tell_which_events_must_be_named() -> None:
    text = CAPABILITIES.replace("[web:fetch]", '["web:*"]')
    events = ("web:fetch", event("web:secret", wildcard=False))
    grant = compiled(text, "{name: p, capabilities: [network]}", events=events).grants["p"]
    assert decide(grant, "web:secret") == decide(grant, "web:invented") == "review_pending"


def test_a_pending_old_name_is_pending_by_its_present_one() -> None:
    events = [event("net:get", aliases=("web:fetch",))]
    grant = compiled(CAPABILITIES, "{name: p, capabilities: [network]}", events=events).grants["p"]
    assert decide(grant, "net:get") == "review_pending"
