"""The questions that look the other way: who can, who gives, what does it give."""

import pytest
from tests.policy.texts import CAPABILITIES, compiled, event

from remit.errors import NotFoundError
from remit.kernel.authority.explanation import holders
from remit.kernel.authority.fleet import Fleet
from remit.policy.catalogue import Catalogue
from remit.policy.queries import capability_id, givers_of, gives

TEXT = (
    CAPABILITIES
    + """
  everything_web: {description: x, event_patterns: ["web:*"], aliases: [old_web]}
  gone: {description: x, event_patterns: [state:get], requires: [messaging], status: retired}
"""
)
PROFILES = (
    "{name: writer, capabilities: [state_write]}",
    "{name: reader, capabilities: [state_read], disallowed_tools: [state:list]}",
    "{name: nobody}",
)


def who_can(catalogue: Catalogue, event: str) -> list[str]:
    found: list[str] = holders(Fleet(), catalogue, event)["profiles"]
    return found


def test_who_can_names_the_profiles_that_grant_an_event() -> None:
    catalogue = compiled(TEXT, *PROFILES)
    assert who_can(catalogue, "state:get") == ["reader", "writer"]
    assert who_can(catalogue, "state:list") == ["writer"]
    assert who_can(catalogue, "system:health") == ["nobody", "reader", "writer"]
    assert who_can(catalogue, "no:such") == []


def test_who_can_understands_old_names() -> None:
    events = [event("state:get", aliases=("store:read",))]
    assert who_can(compiled(TEXT, PROFILES[0], events=events), "store:read") == ["writer"]


def test_all_capabilities_that_give_an_event_are_named() -> None:
    catalogue = compiled(TEXT)
    assert givers_of(catalogue, "web:fetch") == ["everything_web", "network"]
    assert "gone" not in givers_of(catalogue, "state:get")  # retired: it gives nothing
    assert givers_of(catalogue, "no:such") == []


def test_givers_are_what_gives_says_from_the_other_side() -> None:
    catalogue = compiled(TEXT)
    for name in catalogue.universe.names:
        gives_it = [one for one in catalogue.closures if name in gives(catalogue, one)["events"]]
        assert givers_of(catalogue, name) == sorted(gives_it)


def test_a_capability_gives_its_own_and_all_it_requires() -> None:
    answer = gives(compiled(TEXT), "spawning")
    assert answer["events"] == [
        *("agent:send_message", "agent:spawn", "agent:terminate", "message:publish"),
    ]
    assert answer["own_events"] == ["agent:spawn", "agent:terminate"]
    assert answer["requires"] == ["messaging"]
    assert answer["limits"] == {"max_children": 5, "max_depth": 2}


def test_model_tools_and_the_need_of_a_review_are_told() -> None:
    answer = gives(compiled(TEXT), "network")
    assert answer["claude_tools"] == ["WebFetch"]
    assert answer["security_review_required"] is True


def test_a_retired_capability_gives_nothing() -> None:
    answer = gives(compiled(TEXT), "gone")
    assert (answer["events"], answer["requires"], answer["status"]) == ([], [], "retired")


def test_an_old_name_is_answered_by_the_present_one() -> None:
    assert gives(compiled(TEXT), "old_web")["capability"] == "everything_web"


def test_an_unknown_capability_is_refused_with_a_suggestion() -> None:
    with pytest.raises(NotFoundError) as caught:
        capability_id(compiled(TEXT), "netwrok")
    assert caught.value.hint == "did you mean 'network'?"
