"""What a plan says is what then happens: for every profile, living agent, event and model tool.

Random definitions with reviews, approvals, variables, made capabilities and a tree of agents; a
random edit; the plan of the daemon against the difference of what everybody may do.
"""

from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes import texts
from tests.family import Family

from remit.config.definitions.files import Files
from remit.model.principal import Cause

EVENTS = ["state:get", "state:set", "state:list", "state:delete", "math:add", "todo:write_todos"]
TOOLS = ["WebFetch", "Bash"]
MADE = "made"
NAMES = ["c0", "c1", "c2", "c3"]
PROFILES = ["p0", "p1", "p2"]
BASE = (
    "  base: {description: b, always_included: true,"
    " event_patterns: [system:health, agent:spawn]}\n"
)

some_events = st.lists(st.sampled_from(EVENTS), max_size=3, unique=True)


def written(values: list[str]) -> str:
    return "[" + ", ".join(values) + "]"


@st.composite
def capabilities(draw: st.DrawFn) -> str:
    text = BASE
    for at, name in enumerate(NAMES):
        requires = draw(st.lists(st.sampled_from(NAMES[at + 1 :] or ["base"]), max_size=2))
        tools = draw(st.lists(st.sampled_from(TOOLS), max_size=1))
        gated = "true" if draw(st.booleans()) else "false"
        text += (
            f"  {name}: {{description: d, event_patterns: {written(draw(some_events))},"
            f" requires: {written(sorted(set(requires)))}, claude_tools: {written(tools)},"
            f" security_review_required: {gated}}}\n"
        )
    return text


@st.composite
def profiles(draw: st.DrawFn) -> dict[str, str]:
    found = {}
    for at, name in enumerate(PROFILES):
        chosen = draw(st.lists(st.sampled_from(NAMES), max_size=2, unique=True))
        parent = f"extends: {PROFILES[at - 1]}\n" if at and draw(st.booleans()) else ""
        found[name] = (
            f"{parent}variables: {{shift: {{type: string, default: day}}}}\n"
            "components:\n"
            f"  - {{name: capabilities, inline: {written(chosen)}}}\n"
            "  - {name: tool_overrides, when: {shift: night},"
            f" inline: {{disallowed_tools: {written(draw(some_events))}}}}}\n"
            "  - {name: tool_overrides,"
            f" inline: {{additional_tools: {written(draw(some_events))}}}}}\n"
        )
    return found


agents = st.fixed_dictionaries(
    {
        "profile": st.sampled_from(PROFILES),
        "shift": st.sampled_from(["day", "night"]),
        "capabilities": st.dictionaries(st.sampled_from([*NAMES, MADE]), st.booleans(), max_size=2),
        "additional_tools": some_events,
        "below": st.booleans(),
    }
)
worlds = st.fixed_dictionaries(
    {
        "capabilities": capabilities(),
        "profiles": profiles(),
        "approved": st.lists(st.booleans(), min_size=12, max_size=12),
        "made": some_events,
        "agents": st.lists(agents, max_size=4),
        "edited_capabilities": capabilities(),
        "edited_profiles": profiles(),
        "edits": st.tuples(st.booleans(), st.booleans()),
        "removed": st.booleans(),
    }
)

Rights = dict[str, tuple[set[str], set[str]]]


class Yard(Family):
    """Definitions, agents and approvals, and what everybody may do."""

    async def people(self, world: dict[str, Any]) -> None:
        made = {"id": MADE, "description": "d", "event_patterns": world["made"] or ["math:add"]}
        await self.ask("operator", "capability:create", made)
        approved = iter(world["approved"])
        names: list[str] = []
        for at, one in enumerate(world["agents"]):
            who = names[-1] if one["below"] and names else "operator"
            data = {
                "agent_id": f"a{at}",
                "profile": one["profile"],
                "variables": {"shift": one["shift"]},
                "capabilities": one["capabilities"],
                "additional_tools": one["additional_tools"],
                "on_excess": "narrow",
            }
            answer = await self.answer(who, "agent:spawn", data)
            names += [f"a{at}"] if answer.ok else []
        for item in (await self.ask("operator", "review:list", {"kind": "capability"}))["items"]:
            if next(approved, False):
                data = {"id": item["id"], "decision": "approve"}
                answer = await self.answer("operator", "review:decide", data)
                # One yes may give all that another capability waits for.
                assert answer.error is None or answer.error.code == "not_found", answer.error

    async def rights(self) -> Rights:
        """By the surfaces that a caller has: a check of each event, and the list of each agent."""
        found: Rights = {}
        fleet = self.authority.fleet
        for name in self.authority.catalogue.compositions:
            told = await self.ask("operator", "composition:resolve", {"profile": name})
            found[name] = (set(told["allowed_events"]), set(told["allowed_claude_tools"]))
        for name in fleet.names():
            data = {"events": EVENTS, "agent": name}
            results = (await self.ask("operator", "permission:check_many", data))["results"]
            status = await self.ask("operator", "agent:status", {"agent_id": name})
            held = {one["event"] for one in results if one["allowed"]}
            assert held == set(EVENTS) & set(status["allowed_events"])
            found[f"agent {name}"] = (held, set(status["allowed_claude_tools"]))
        return found


def difference(before: Rights, after: Rights) -> dict[str, tuple[list[str], ...]]:
    found = {}
    for name in before.keys() | after.keys():
        was, now = before.get(name, (set(), set())), after.get(name, (set(), set()))
        lists = (now[0] - was[0], was[0] - now[0], now[1] - was[1], was[1] - now[1])
        if any(lists):
            found[name] = tuple(sorted(one) for one in lists)
    return found


def told(plan: dict[str, Any]) -> dict[str, tuple[list[str], ...]]:
    keys = ("granted", "revoked", "tools_granted", "tools_revoked")
    everybody = plan["profiles"] | {f"agent {name}": one for name, one in plan["agents"].items()}
    changes = {name: tuple(list(one[key]) for key in keys) for name, one in everybody.items()}
    return {name: lists for name, lists in changes.items() if any(lists)}


async def tried(world: dict[str, Any]) -> None:
    yard = Yard(files_of(world["capabilities"], world["profiles"]))
    await yard.people(world)
    before = await yard.rights()
    texts_ = world["edited_capabilities"] if world["edits"][0] else world["capabilities"]
    edited = dict(world["edited_profiles"] if world["edits"][1] else world["profiles"])
    if world["removed"] and "extends: p2" not in "".join(edited.values()):
        edited.pop("p2")
    files = files_of(texts_, edited)
    draft = {
        "catalogue": files.contents[files.catalogue].decode(),
        "compositions": {
            name.rpartition("/")[2]: files.contents[name].decode() for name in files.compositions
        },
        "complete": True,
    }
    plan = await yard.ask("operator", "composition:plan", draft)
    yard.files = files
    outcome = await yard.kernel.reloader.reload(Cause("files_edited"))
    after = await yard.rights()
    assert told(plan) == difference(before, after)
    if outcome.changed:
        assert told(outcome.to_json()) == told(plan)
        rows = (await yard.ask("operator", "audit:query", {"event": "config:changed"}))["items"]
        assert rows[0]["details"]["summary"] == plan["summary"]


def files_of(catalogue: str, compositions: dict[str, str]) -> Files:
    return texts(catalogue, **compositions)


@settings(max_examples=60, deadline=None)
@given(worlds)
def test_a_plan_is_the_difference_of_what_everybody_may_do(world: dict[str, Any]) -> None:
    anyio.run(tried, world)
