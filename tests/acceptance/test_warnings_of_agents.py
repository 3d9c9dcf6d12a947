"""What an agent is given and does not get, told at every door, and what names nothing, refused."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.acceptance.site import PATIENCE, Daemon, Site
from tests.outside.hosts import host

from remit_client import InvalidData

GIVER = "capabilities: [spawn_agents, adjust_agents, state_write]\n"
GATED: dict[str, Any] = {"capabilities": ["network_access"]}
HELD_BACK: dict[str, Any] = {"additional_tools": ["WebFetch"]}
TYPO: dict[str, Any] = {"additional_tools": ["state:gett"]}
WARNED = [
    (GATED, "review_pending", "'network_access' waits for a security review for 'kid'"),
    (HELD_BACK, "review_pending", "'WebFetch' is not given"),
    (TYPO, "dead_pattern", "no event matches 'state:gett'"),
]
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"capabilities": ["network_acces"]}, "did you mean 'network_access'?"),
    ({"disallowed_tools": ["state:gett"]}, "did you mean 'state:get'?"),
    ({"profile": "obsever"}, "did you mean 'observer'?"),
]


@pytest.fixture
def daemon(site: Site) -> Iterator[Daemon]:
    site.configure(http="127.0.0.1:0")
    site.add_profile("giver", GIVER)
    with site.serving() as daemon:
        yield daemon


def http(daemon: Daemon) -> httpx.Client:
    with daemon.operator() as operator:
        token = operator.call("key:token")["token"]
    headers = {"Authorization": f"Bearer {token}"}
    url = daemon.ready["endpoints"]["http"]
    return httpx.Client(base_url=url, headers=headers, timeout=PATIENCE)


@pytest.mark.parametrize(("given", "code", "message"), WARNED)
def test_every_door_tells_what_is_not_given(
    daemon: Daemon, given: dict[str, Any], code: str, message: str
) -> None:
    told = []
    with daemon.operator() as operator, http(daemon) as web:
        told.append(operator.call("agent:spawn", {"agent_id": "kid"} | given))
        told.append(operator.call("agent:update", {"agent_id": "kid"} | given))
        told.append(web.patch("/v1/agents/kid", json=given).json())
        operator.call("agent:terminate", {"agent_id": "kid"})
        told.append(web.post("/v1/agents", json={"id": "kid"} | given).json())
        operator.call("agent:terminate", {"agent_id": "kid"})
        said = daemon.site.run(
            "call", "agent:spawn", "--data", json.dumps({"agent_id": "kid"} | given)
        )
        told.append(json.loads(said.stdout))
    for answer in told:
        (warning,) = answer["warnings"]
        assert warning["code"] == code
        assert warning["message"].startswith(message)


def test_the_command_that_spawns_prints_them(daemon: Daemon) -> None:
    said = daemon.site.run("spawn", "observer", "--add", "state:gett", "--add", "WebFetch")
    assert "warning: no event matches 'state:gett'" in said.stderr
    assert "warning: 'WebFetch' is not given" in said.stderr


async def test_a_host_reads_them_in_the_answer_of_the_tool(daemon: Daemon) -> None:
    daemon.new_key("ann", "giver")
    async with host(daemon, "ann") as client:
        done = await client.call_tool("agent_spawn", {"additional_tools": ["stat:*"]})
        assert done.structured_content is not None
        (warning,) = done.structured_content["warnings"]
        assert warning["code"] == "dead_pattern"
        for given in ({"capabilities": ["network_acces"]}, {"disallowed_tools": ["state:gett"]}):
            refused = await client.call_tool("agent_spawn", given)
            assert refused.is_error


@pytest.mark.parametrize(("given", "hint"), REFUSED)
def test_what_names_nothing_is_refused_with_what_was_meant(
    daemon: Daemon, given: dict[str, Any], hint: str
) -> None:
    with daemon.operator() as operator, http(daemon) as web:
        operator.call("agent:spawn", {"agent_id": "kid"})
        answers = [
            web.post("/v1/agents", json=given),
            web.patch("/v1/agents/kid", json=given),
        ]
        assert [answer.json()["hint"] for answer in answers] == [hint, hint]
        assert not any(answer.is_success for answer in answers)
        if "profile" not in given:
            for event, data in (
                ("agent:spawn", given),
                ("agent:update", {"agent_id": "kid"} | given),
            ):
                with pytest.raises(InvalidData, match="did you mean"):
                    operator.call(event, data)
    said = daemon.site.run("call", "agent:spawn", "--data", json.dumps(given))
    assert said.returncode == 2
    assert hint in said.stderr


def test_a_waiting_capability_is_approved_for_the_agent_alone(daemon: Daemon) -> None:
    with daemon.operator() as operator:
        operator.call("agent:spawn", {"agent_id": "kid", "profile": "observer"} | GATED)
        assert "agent:kid/network_access" in daemon.site.run("review", "list").stdout
        said = daemon.site.run("review", "approve", "kid", "network_access").stdout
        assert said.startswith("approved: kid gets ")
        seen = operator.call("agent:status", {"agent_id": "kid"})
        assert seen["allowed_claude_tools"] == ["WebFetch", "WebSearch"]
        spared = operator.call("composition:resolve", {"profile": "observer"})
        assert spared["allowed_claude_tools"] == []
