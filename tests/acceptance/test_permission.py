"""May I, and why: the operator's answers and those of a client that holds a profile."""

from collections.abc import Iterator

import pytest
from tests.acceptance.site import Daemon

from remit_client import Denied, RemitError, UnknownEvent
from remit_client.sync import Client


@pytest.fixture(scope="module")
def operator(daemon: Daemon) -> Iterator[Client]:
    with daemon.operator() as client:
        yield client


@pytest.fixture(scope="module")
def bob(daemon: Daemon) -> Iterator[Client]:
    """A client that holds the starter profile `observer`."""
    with daemon.client("bob", "observer") as client:
        yield client


def refusal(client: Client, event: str, data: object = None) -> RemitError:
    with pytest.raises(RemitError) as caught:
        client.call(event, data)
    return caught.value


def test_health_says_which_revision_is_in_force(operator: Client, bob: Client) -> None:
    health = operator.call("system:health")
    assert health["status"] == "ok"
    assert health["stale"] is False
    assert health["revision"] == 1
    before = health["agents"]
    operator.call("agent:spawn", {"profile": "orchestrator", "agent_id": "counted"})
    assert operator.call("system:health")["agents"] == before + 1
    assert operator.call("system:health")["agents"] == operator.call("agent:list")["total"]
    operator.call("agent:terminate", {"agent_id": "counted"})
    assert operator.call("system:health")["agents"] == before
    assert health["uptime"] >= 0
    assert set(bob.call("system:health")) == set(health)


def test_a_check_answers_for_the_one_who_asks(operator: Client, bob: Client) -> None:
    assert operator.call("permission:check", {"event": "state:set"}) == {
        "allowed": True,
        "reason": "granted",
        "event": "state:set",
        "agent": "operator",
        "revision": 1,
    }
    assert bob.call("permission:check", {"event": "state:set"}) == {
        "allowed": False,
        "reason": "no_grant",
        "event": "state:set",
        "agent": "bob",
        "revision": 1,
    }
    assert bob.allowed("state:get")


def test_many_checks_answer_in_the_order_in_which_they_were_asked(bob: Client) -> None:
    answer = bob.call("permission:check_many", {"events": ["state:set", "no:such", "state:get"]})
    assert answer == {
        "results": [
            {"event": "state:set", "allowed": False, "reason": "no_grant"},
            {"event": "no:such", "allowed": False, "reason": "no_grant"},
            {"event": "state:get", "allowed": True, "reason": "granted"},
        ],
        "revision": 1,
    }


def test_only_the_operator_learns_that_an_event_does_not_exist(
    operator: Client, bob: Client
) -> None:
    question = {"event": "no:such"}
    assert operator.call("permission:check", question)["reason"] == "unknown_event"
    assert operator.call("permission:explain", question)["reason"] == "unknown_event"
    assert bob.call("permission:check", question)["reason"] == "no_grant"
    assert bob.call("permission:explain", question)["reason"] == "no_grant"


def test_an_explanation_names_the_rule_and_its_place(operator: Client, bob: Client) -> None:
    mine = bob.call("permission:explain", {"event": "state:get"})
    theirs = operator.call("permission:explain", {"event": "state:get", "agent": "bob"})
    assert mine == theirs
    assert mine["subject"] == "bob"
    rule = mine["granted_by"][0]
    assert (rule["capability"], rule["path"], rule["pattern"]) == (
        "state_read",
        ["observer:5", "state_read"],
        "state:get",
    )
    assert rule["file"].endswith("capabilities.yaml")
    assert rule["line"] > 1
    assert rule["column"] > 1


def test_the_operator_explains_a_profile_and_is_told_of_a_typo(operator: Client) -> None:
    found = operator.call("permission:explain", {"event": "state:set", "profile": "observer"})
    assert (found["allowed"], found["reason"]) == (False, "no_grant")
    assert {"event": "state:set", "capability": "state_write"} in found["near_misses"]
    typo = refusal(operator, "permission:explain", {"event": "state:set", "profile": "obsever"})
    assert typo.code == "unknown_agent"
    assert "'observer'" in typo.hint


def test_a_matrix_has_a_row_for_each_subject_and_a_column_for_each_event(
    operator: Client, bob: Client
) -> None:
    asked = {"profiles": ["minimal", "executor"], "agents": ["bob"], "namespace": "state"}
    matrix = operator.call("permission:matrix", asked)
    assert matrix["columns"] == ["state:delete", "state:get", "state:list", "state:set"]
    assert matrix["rows"] == [
        {"kind": "profile", "subject": "minimal", "allowed": [False] * 4},
        {"kind": "profile", "subject": "executor", "allowed": [True] * 4},
        {"kind": "agent", "subject": "bob", "allowed": [False, True, True, False]},
    ]
    own = bob.call("permission:matrix", {"namespace": "state"})
    assert own["columns"] == ["state:get", "state:list"]
    assert {row["subject"] for row in own["rows"]} >= {"minimal", "observer"}
    assert "executor" not in {row["subject"] for row in own["rows"]}


def test_a_denial_carries_its_reason_its_decision_and_its_revision(bob: Client) -> None:
    error = refusal(bob, "state:set", {"key": "a", "value": 1})
    assert isinstance(error, Denied)
    assert error.details["reason"] == "no_grant"
    assert error.decision
    assert error.decision != refusal(bob, "state:delete").decision
    assert error.decision == refusal(bob, "state:set").decision, "the same again is one row"
    assert bob.ask("system:health").revision == 1


def test_a_denial_is_the_same_whether_or_not_the_event_exists(bob: Client) -> None:
    exists = refusal(bob, "state:delete")
    does_not = refusal(bob, "state:devour")

    def without_name(error: RemitError, name: str) -> tuple[object, ...]:
        texts = (error.message, error.hint, repr(error.details))
        return (error.code, *(text.replace(name, "EVENT") for text in texts))

    assert without_name(exists, "state:delete") == without_name(does_not, "state:devour")


def test_the_operator_hears_of_a_typo_and_what_was_meant(operator: Client) -> None:
    error = refusal(operator, "state:gett")
    assert isinstance(error, UnknownEvent)
    assert "'state:get'" in error.hint


@pytest.mark.parametrize(
    ("event", "data"),
    [
        ("permission:check", {"event": "state:set", "agent": "WHO"}),
        ("permission:check_many", {"events": ["state:set"], "agent": "WHO"}),
        ("permission:explain", {"event": "state:set", "agent": "WHO"}),
        ("permission:matrix", {"agents": ["WHO"]}),
    ],
)
def test_an_agent_field_cannot_ask_about_somebody_else(
    bob: Client, event: str, data: dict[str, object]
) -> None:
    def about(who: str) -> RemitError:
        filled = {key: who if value == "WHO" else value for key, value in data.items()}
        filled |= {"agents": [who]} if "agents" in data else {}
        return refusal(bob, event, filled)

    error, unknown = about("operator"), about("nobody")
    assert error.code == unknown.code == "unknown_agent"
    assert error.message.replace("operator", "nobody") == unknown.message


@pytest.mark.parametrize("field", ["agent", "agent_id", "principal", "origin"])
def test_no_field_of_a_message_lets_a_client_act_for_somebody_else(bob: Client, field: str) -> None:
    error = refusal(bob, "state:set", {"key": "a", "value": 1, field: "operator"})
    assert error.code == "denied"
    refused = refusal(bob, "state:get", {"key": "a", field: "operator"})
    assert (refused.code, refused.details["path"]) == ("invalid_data", f"$.{field}")
