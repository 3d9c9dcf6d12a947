"""What an agent can find out: nothing about what it may not use (rows 49 and 50).

Every profile asks everything there is to ask, and all that comes back is searched for names.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from tests.acceptance.site import Daemon, new_site

from remit_client import RemitError
from remit_client.keys import new_key
from remit_client.sync import Client, connect

LADDER = ["minimal", "observer", "communicator", "executor", "coordinator", "orchestrator"]
STARTER = [*LADDER, "administrator", "base_multi_agent", "base_multi_agent_explicit", "tester"]
SINGLE = {
    "only_get": "state:get",
    "only_stats": "system:stats",
    "only_matrix": "permission:matrix",
    "only_resolve": "composition:resolve",
    "only_drafts": "composition:validate",
    "only_plans": "composition:plan",
    "only_keys": "key:add",
}
DENYING = """
capabilities: {catalogue_read: true, catalogue_draft: true, state_write: true, observe: true}
disallowed_tools: ["state:s*", system:stats, "composition:mig*"]
"""
PROFILES = [*STARTER, *SINGLE, "denying"]
FORMATS = ["verbose", "compact", "ultra_compact", "mcp"]
WORD = re.compile(r"[a-z][a-z0-9_]*(?::[a-z0-9_]+)*")


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with new_site() as site:
        for name, event in SINGLE.items():
            site.add_profile(name, f"additional_tools: ['{event}']\n")
        site.add_profile("denying", DENYING)
        with site.serving() as daemon:
            yield daemon


class World:
    """Everything there is, as the operator sees it."""

    def __init__(self, operator: Client) -> None:
        found = operator.call("system:discover", {"level": "full"})["namespaces"].values()
        self.events = [entry["event"] for entries in found for entry in entries]
        listed = operator.call("capability:list")["items"]
        self.capabilities = [item["id"] for item in listed]
        self.announced = {item["id"] for item in listed if item["status"] == "coming_soon"}
        self.profiles = [item["name"] for item in operator.call("composition:list")["items"]]
        resolved = {
            name: operator.call("composition:resolve", {"profile": name}) for name in self.profiles
        }
        self.granted = {name: set(each["allowed_events"]) for name, each in resolved.items()}
        self.tools = {name: set(each["allowed_claude_tools"]) for name, each in resolved.items()}
        self.held = {name: set(each["capabilities"]) for name, each in resolved.items()}
        self.gives = {
            name: operator.call("capability:get", {"id": name})["own_events"]
            for name in self.capabilities
        }

    def hidden_events(self, profile: str) -> set[str]:
        return set(self.events) - self.granted[profile]

    def hidden_capabilities(self, profile: str) -> set[str]:
        """Those the profile neither holds nor could put together from its own events.

        What is announced, and gives nothing to anybody yet, everybody may hear of.
        """
        if not self.hidden_events(profile):
            return set()  # nothing is hidden from one who holds every event
        return {
            name
            for name in set(self.capabilities) - self.held[profile] - self.announced
            if not self.gives[name] or not self.granted[profile].issuperset(self.gives[name])
        }

    def hidden_profiles(self, profile: str) -> set[str]:
        return {
            name
            for name in set(self.profiles) - {profile}
            if not self.granted[name] <= self.granted[profile]
            or not self.tools[name] <= self.tools[profile]
        }


@pytest.fixture(scope="module")
def world(daemon: Daemon) -> World:
    with daemon.operator() as operator:
        return World(operator)


@pytest.fixture(scope="module")
def agents(daemon: Daemon, world: World) -> Iterator[dict[str, Client]]:
    """One connected agent for each profile; some keys that are none of their business."""
    keys = {name: daemon.new_key(name.replace("_", "-"), name) for name in world.profiles}
    daemon.new_key("bystander", "administrator")
    clients = {}
    contexts = []
    for name, key in keys.items():
        context = connect(home=daemon.home, key=key)
        contexts.append(context)
        clients[name] = context.__enter__()
    yield clients
    for context in contexts:
        context.__exit__(None, None, None)


DRAFT = "name: draft\ncapabilities: {state_red: true}\ndisallowed_tools: ['state:gett']\n"
WIDE = "name: minimal\ncapabilities: {state_write: true, key_management: true, observe: true}\n"


def questions(world: World) -> Iterator[tuple[str, dict[str, Any]]]:
    """Everything that only looks, and mistakes that invite a suggestion."""
    yield from (("system:health", {}), ("system:stats", {}), ("key:list", {}))
    for form in FORMATS:
        yield "system:help", {"format": form}
        for level in ("summary", "namespace", "full"):
            yield "system:discover", {"level": level, "format": form}
    for space in sorted({event.partition(":")[0] for event in world.events}):
        yield "system:discover", {"level": "full", "namespace": space}
        yield "permission:matrix", {"namespace": space}
    for module in ("remit.features.agents.keys", "remit.features.state.events"):
        yield "system:discover", {"level": "full", "module": module}
    yield from (("capability:list", {}), ("composition:list", {}), ("permission:matrix", {}))
    yield "capability:get", {"id": "state_reed"}
    yield from (("discovery:stats", {}), ("discovery:refresh", {}), ("discovery:examples", {}))
    yield from (("skill:list", {}), ("skill:list", {"id": "x"}), ("skill:read", {"id": "x"}))
    yield "state:get", {"key": "nothing"}
    yield "state:get", {"kee": "nothing"}
    for name in [*world.profiles, "obsever"]:
        yield "composition:get", {"name": name}
        yield "composition:resolve", {"profile": name}
        yield "composition:migrate", {"name": name}
        yield "permission:matrix", {"profiles": [name]}
        yield "permission:explain", {"event": "no:such", "profile": name}
        yield "key:add", {"name": "new", "public_key": new_key("new").public_key, "profile": name}
    yield "key:revoke", {"name": "bystandr"}
    for files in ({}, {"draft.yaml": DRAFT}, {"minimal.yaml": WIDE}, {"x.yaml": "a: ["}):
        yield "composition:validate", {"compositions": files}
        yield "composition:plan", {"compositions": files}
    yield "composition:validate", {"remove": ["minimal.yaml"]}
    yield "composition:plan", {"remove": ["minimal.yaml"]}


def questions_about(event: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield event, {"no_such_field": 1}
    for form in FORMATS:
        yield "system:help", {"event": event, "format": form}
    yield "system:discover", {"event": event, "level": "full"}
    yield "permission:check", {"event": event}
    yield "permission:check_many", {"events": [event]}
    yield "permission:explain", {"event": event}
    yield "capability:of_event", {"event": event}
    yield "discovery:describe", {"id": event}
    yield "discovery:describe", {"id": f"tool:{event}"[:-1]}
    yield "discovery:discover", {"query": event, "render": True}
    yield "discovery:tools", {"query": event.replace(":", " ")}


def told(client: Client, event: str, data: object) -> str:
    """All that comes back, answers and failures alike, as one text."""
    try:
        return msgspec.json.encode(client.call(event, data)).decode()
    except RemitError as error:
        parts = [error.code, error.message, error.hint, error.details]
        return msgspec.json.encode(parts).decode()


def named_in(text: str, asked: str) -> set[str]:
    """The words of an answer, without those of the question."""
    return set(WORD.findall(text)) - set(WORD.findall(asked))


@pytest.mark.parametrize("profile", PROFILES)
def test_no_answer_names_what_the_caller_may_not_use(
    agents: dict[str, Client], world: World, profile: str
) -> None:
    hidden = world.hidden_events(profile) | world.hidden_capabilities(profile)
    asked = [*questions(world)]
    names = [*world.events, "state:gett", "web:web_fetch"]  # the last waits for a review
    asked += [one for event in names for one in questions_about(event)]
    for event, data in asked:
        text = told(agents[profile], event, data)
        leaked = named_in(text, f"{event} {data}") & hidden
        assert not leaked, (event, data, text)


@pytest.mark.parametrize("profile", PROFILES)
def test_no_list_names_a_profile_or_a_key_above_the_caller(
    agents: dict[str, Client], world: World, profile: str
) -> None:
    hidden = world.hidden_profiles(profile)
    hidden_names = hidden | {name.replace("_", "-") for name in hidden}
    if profile != "administrator":
        hidden_names.add("bystander")
    for event, data in questions(world):
        text = told(agents[profile], event, data)
        words = set(re.findall(r"[a-z][a-z_-]*", text))
        words -= set(re.findall(r"[a-z][a-z_-]*", f"{event} {data}"))
        assert not words & hidden_names - {"minimal"}, (event, data, text)


@pytest.mark.parametrize("profile", [name for name in PROFILES if name != "administrator"])
def test_no_count_counts_what_the_caller_may_not_use(
    agents: dict[str, Client], world: World, profile: str
) -> None:
    client, granted = agents[profile], world.granted[profile]
    summary = client.call("system:discover", {"level": "summary"})
    assert summary["total"] == sum(summary["namespaces"].values()) == len(granted)
    assert client.call("system:health")["agents"] == 0
    if "capability:list" in granted:
        listed = client.call("capability:list")
        assert listed["total"] == len(listed["items"])
        listed = client.call("composition:list")
        assert listed["total"] == len(listed["items"])
    if "system:stats" in granted:
        counted = client.call("system:stats")
        assert set(counted) == {"by_event", "by_agent", "revision"}
        assert len(counted["by_agent"]) == 1, "of itself; it has no agents"
    if "composition:validate" in granted:
        assert client.call("composition:validate")["counts"]["events"] == len(granted)


UNEXPOSED = {
    *("key_management", "audit_read", "reviewing", "config_admin", "upstream_admin"),
    *("discovery", "discovery_feedback", "discovery_admin", "skills"),
    *("awareness", "awareness_feedback", "awareness_admin", "own_runtime"),
    *("registry", "registry_admin"),
}
"""The capabilities of the starter catalogue that say `mcp_tools: false`."""
WIDE_OPEN = "administrator"
"""It is given `*` besides, which shows all that a wildcard grants."""


@pytest.mark.parametrize("profile", PROFILES)
def test_every_face_of_a_grant_shows_the_same_events(
    agents: dict[str, Client], world: World, profile: str
) -> None:
    client, granted = agents[profile], world.granted[profile]
    names = world.events
    spaces = client.call("system:discover", {"level": "full"})["namespaces"].values()
    full = {entry["event"]: entry for entries in spaces for entry in entries}
    assert set(full) == granted
    checked = client.call("permission:check_many", {"events": names})["results"]
    assert {each["event"] for each in checked if each["allowed"]} == granted
    single = {e for e in names if client.call("permission:check", {"event": e})["allowed"]}
    assert single == granted
    explained = {e: client.call("permission:explain", {"event": e}) for e in names}
    assert {event for event, why in explained.items() if why["allowed"]} == granted
    assert {e["event"]: e["reason"] for e in checked} == {
        event: why["reason"] for event, why in explained.items()
    }
    tools = client.call("system:discover", {"level": "full", "format": "mcp"})["tools"]
    kept_back = {e for name in UNEXPOSED & set(world.held[profile]) for e in world.gives[name]}
    if profile == WIDE_OPEN:
        kept_back = {event for event in kept_back if not full[event]["flags"]["wildcard"]}
    pushed = {event for event, entry in full.items() if entry["flags"]["pushed"]}
    assert {tool["event"] for tool in tools} == granted - kept_back - pushed
    assert {event for event in names if not is_denied(client, event)} == granted


def is_denied(client: Client, event: str) -> bool:
    """Ask in a way that the event itself refuses: only the permission is tried."""
    try:
        client.call(event, {"no_such_field": 1})
    except RemitError as error:
        return error.code == "denied"
    return False


def test_an_allowed_event_is_always_explained_by_a_rule(
    agents: dict[str, Client], world: World
) -> None:
    for profile in PROFILES:
        for event in world.granted[profile]:
            assert agents[profile].call("permission:explain", {"event": event})["granted_by"]
