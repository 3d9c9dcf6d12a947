"""Through what was made at run time nobody gets what its author does not hold now.

The definitions here never went through `capability:create`: what holds for them holds whatever that
check forgets.
"""

from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule
from tests.fakes import texts

from remit.config.definitions.files import parse_definitions
from remit.kernel.authority.fleet import Fleet
from remit.model.capability import RuntimeCapability, RuntimeDefinition, RuntimeVersion
from remit.model.event import EventSpec, Universe, make_universe
from remit.model.grant import Grant
from remit.model.limits import Limits
from remit.model.names import parse_event_name
from remit.model.principal import Agent, AgentSpec
from remit.policy.catalogue import Catalogue, Definitions
from remit.policy.compile import compile_definitions

EVENTS = ["a:one", "a:two", "b:one", "b:two", "c:one", "c:two", "d:key"]
FILES = """
  base: {description: b, event_patterns: [c:two], always_included: true}
  one: {description: o, event_patterns: [a:one, b:one], aliases: [uno]}
  all_a: {description: a, event_patterns: ["a:*"], requires: [one]}
  all_b: {description: a, event_patterns: ["b:*", d:key], requires: [all_a], claude_tools: [Bash]}
  gated: {description: g, event_patterns: [c:one], security_review_required: true}
  gone: {description: g, event_patterns: [b:two], status: retired, replaces: [elder]}
"""
PROFILES = {
    "none": "description: n\n",
    "little": "capabilities: [one]\n",
    "much": "capabilities: [all_a]\ndisallowed_tools: [b:one]\n",
    "most": "capabilities: [all_b, gated]\n",
    "asking": "capabilities: [all_b]\napproval_required: ['b:*']\n",
    "corner": "capabilities: [all_b]\nlimits: {state_prefixes: [team/]}\n",
    "user": "capabilities: [m0]\npinned: ['b:*', a:one]\n",
    "stern": "capabilities: [m0, m1]\ndisallowed_tools: ['a:*', Bash]\n",
}
MADE = ["m0", "m1", "m2"]
FLAGS = st.dictionaries(
    st.sampled_from([*MADE, "one", "uno", "all_a", "all_b", "gated", "gone"]), st.booleans()
)
DEFINITIONS = st.builds(
    RuntimeDefinition,
    description=st.just("made"),
    event_patterns=st.lists(
        st.sampled_from([*EVENTS, "a:*", "b:*", "c:*", "d:*", "a:o*", "old:one", "old:*"])
    ).map(tuple),
    claude_tools=st.lists(st.sampled_from(["Bash", "WebFetch"])).map(tuple),
    requires=st.lists(
        st.sampled_from([*MADE, "one", "uno", "all_a", "all_b", "gated", "gone", "elder", "nobody"])
    ).map(tuple),
    status=st.sampled_from(["available", "available", "deprecated", "retired"]),
    mcp_tools=st.booleans(),
)


def universe() -> Universe:
    specs = [
        EventSpec(
            name=parse_event_name(name),
            wildcard=name != "d:key",
            aliases=(parse_event_name("old:one"),) if name == "b:two" else (),
            capability="m2" if name == "b:two" else None,
        )
        for name in EVENTS
    ]
    return make_universe(specs)


UNIVERSE = universe()
PARSED = parse_definitions(texts(FILES, **PROFILES))


def compiled(made: dict[str, RuntimeCapability], universe: Universe = UNIVERSE) -> Catalogue:
    """The files with what was made; stand-ins of nobody for what the profiles name."""
    nobody = RuntimeVersion(1, RuntimeDefinition(description="nobody's"), "", "", 0.0)
    for name in MADE:
        made.setdefault(name, RuntimeCapability(id=name, author="nobody", versions=(nobody,)))
    found = Definitions(
        PARSED.capabilities, PARSED.compositions, runtime_capabilities=tuple(made.values())
    )
    return compile_definitions(found, universe)


UNTOUCHED = compiled({})
EVERYTHING = Grant(
    profile="",
    revision=1,
    bits=UNIVERSE.everything,
    events=frozenset(EVENTS),
    claude_tools=frozenset({"Bash", "WebFetch"}),
)


class Authors(RuleBasedStateMachine):
    """Agents and authors that come, change, make capabilities, and go."""

    agents = Bundle("agents")

    @initialize()
    def begin(self) -> None:
        self.fleet = Fleet()
        self.made: dict[str, RuntimeCapability] = {}
        self.catalogue = compiled(self.made)
        self.count = 0

    def _add(self, parent: str | None, **spec: Any) -> str:
        name = f"agent-{self.count}"
        self.count += 1
        self.fleet.add(Agent(id=name, parent=parent, public_key=name, spec=AgentSpec(**spec)))
        return name

    @rule(target=agents, profile=st.sampled_from(sorted(PROFILES)), flags=FLAGS)
    def arrive(self, profile: str, flags: dict[str, bool]) -> str:
        return self._add(None, profile=profile, capabilities=flags)

    @rule(
        target=agents,
        parent=agents,
        profile=st.sampled_from(["", *PROFILES]),
        flags=FLAGS,
        inherit=st.booleans(),
    )
    def spawn(self, parent: str, profile: str, flags: dict[str, bool], inherit: bool) -> str:  # noqa: FBT001
        if parent not in self.fleet:
            return parent
        spec = {"inherit": True} if inherit else {"profile": profile, "capabilities": flags}
        return self._add(parent, **spec)

    @rule(
        author=st.one_of(agents, st.just("operator")),
        name=st.sampled_from(MADE),
        definition=DEFINITIONS,
    )
    def make(self, author: str, name: str, definition: RuntimeDefinition) -> None:
        version = RuntimeVersion(1, definition, "", author, 0.0)
        made = RuntimeCapability(id=name, author=author, author_key=author, versions=(version,))
        self.made[name] = made
        self.catalogue = compiled(self.made)

    @rule(
        agent=agents,
        profile=st.sampled_from(sorted(PROFILES)),
        flags=FLAGS,
        denied=st.sampled_from([(), ("a:*",), ("b:one", "Bash")]),
        archived=st.booleans(),
    )
    def change(
        self,
        agent: str,
        profile: str,
        flags: dict[str, bool],
        denied: tuple[str, ...],
        archived: bool,  # noqa: FBT001
    ) -> None:
        present = self.fleet.get(agent)
        if present is None or present.spec.inherit:
            return
        spec = AgentSpec(
            profile=profile,
            capabilities=flags,
            disallowed_tools=denied,
            status="archived" if archived else "active",
        )
        key, parent = present.public_key, present.parent
        self.fleet.replace(Agent(id=agent, parent=parent, public_key=key, spec=spec))

    @rule(agent=agents)
    def end(self, agent: str) -> None:
        self.fleet.remove(self.fleet.subtree(agent))

    @rule(agent=agents)
    def another_takes_the_name(self, agent: str) -> None:
        self.fleet.remove(self.fleet.subtree(agent))
        spec = AgentSpec(profile="most")
        self.fleet.add(Agent(id=agent, public_key=f"new-{agent}", spec=spec))

    @invariant()
    def nobody_gets_more_than_an_author_holds(self) -> None:
        grants = {name: self.fleet.grant(name, self.catalogue) for name in self.fleet.names()}
        for name, grant in grants.items():
            assert grant.events == set(UNIVERSE.names_in(grant.bits))
            assert grant.exposed | grant.approval_required <= grant.events
            assert grant.pinned <= grant.exposed
            ground = self.fleet.ground(name, self.catalogue)
            assert ground.events <= grant.events
            # What one holds by itself is the same as if nobody had ever made anything.
            assert ground.events == self.fleet.copy().grant(name, UNTOUCHED).events
            for event in grant.events - ground.events:
                self._explained(name, event, grants)
            lent = grant.claude_tools - ground.claude_tools
            assert not lent or any(lent <= one.claude_tools for one in self._givers(name, grants))

    def _explained(self, name: str, event: str, grants: dict[str, Any]) -> None:
        givers = [one for one in self._givers(name, grants) if event in one.events]
        assert givers, (name, event)
        if all(event in one.approval_required for one in givers):
            assert event in grants[name].approval_required
        if all(one.limits.state_prefixes for one in givers):
            assert grants[name].limits.state_prefixes == ("team/",)
        agent = self.fleet.get(name)
        assert agent is not None
        if agent.parent is not None:
            assert event in grants[agent.parent].events
        assert not any(pattern.covers(event) for pattern in grants[name].denied)
        assert event != "c:one"  # its review was never approved for anybody

    def _givers(self, name: str, grants: dict[str, Any]) -> list[Any]:
        """What the living authors of all that was made hold; nobody else may have given it."""
        found = []
        for made in self.made.values():
            if made.author == "operator":
                found.append(EVERYTHING)
            author = self.fleet.get(made.author)
            if author is not None and author.public_key == made.author_key:
                found.append(grants[made.author])
        return found


Authors.TestCase.settings = settings(max_examples=200, stateful_step_count=20, deadline=None)
TestAuthors = Authors.TestCase


def one_made(author: str, **fields: Any) -> Catalogue:
    version = RuntimeVersion(1, RuntimeDefinition(description="d", **fields), "", author, 0.0)
    made = RuntimeCapability(id="m0", author=author, author_key=author, versions=(version,))
    return compiled({"m0": made})


def two(author: str, holder: str) -> Fleet:
    fleet = Fleet()
    fleet.add(Agent(id="ann", public_key="ann", spec=AgentSpec(profile=author)))
    fleet.add(Agent(id="bob", public_key="bob", spec=AgentSpec(profile=holder)))
    return fleet


def test_a_holder_gets_what_the_author_holds_of_it_and_loses_it_with_the_author() -> None:
    fleet, catalogue = two("little", "user"), one_made("ann", event_patterns=("a:*", "b:two"))
    assert fleet.grant("bob", catalogue).events == {"c:two", "a:one"}
    fleet.replace(Agent(id="ann", public_key="ann", spec=AgentSpec(profile="none")))
    assert fleet.grant("bob", catalogue).events == {"c:two"}
    fleet.replace(Agent(id="ann", public_key="ann", spec=AgentSpec(profile="most")))
    assert fleet.grant("bob", catalogue).events == {"c:two", "a:one", "a:two", "b:two"}
    fleet.remove(["ann"])
    assert fleet.grant("bob", catalogue).events == {"c:two"}
    assert "m0" not in fleet.grant("bob", catalogue).capabilities


def test_what_it_requires_comes_only_as_far_as_the_author_holds_that() -> None:
    fleet, catalogue = two("much", "user"), one_made("ann", requires=("all_b",))
    assert fleet.grant("bob", catalogue).events == {"c:two", "a:one", "a:two"}
    assert fleet.grant("bob", catalogue).claude_tools == frozenset()


def test_an_approval_and_a_corner_of_the_state_come_along() -> None:
    catalogue = one_made("ann", event_patterns=("b:*",))
    asking = two("asking", "user").grant("bob", catalogue)
    assert asking.approval_required == {"b:one", "b:two"}
    assert two("corner", "user").grant("bob", catalogue).limits == Limits(state_prefixes=("team/",))


def test_pins_of_the_holder_reach_what_it_shows_while_the_author_holds_it() -> None:
    catalogue = one_made("ann", event_patterns=("b:*",))
    assert two("most", "user").grant("bob", catalogue).pinned == {"b:one", "b:two"}
    assert two("little", "user").grant("bob", catalogue).pinned == {"b:one"}
    dead = [w.message for w in catalogue.grants["user"].warnings if w.code == "dead_pin"]
    assert len(dead) == 1
    assert "'a:one'" in dead[0]
    hidden = one_made("ann", event_patterns=("b:*",), mcp_tools=False)
    grant = two("most", "user").grant("bob", hidden)
    assert (grant.pinned, "b:one" in grant.events) == (frozenset(), True)


def test_an_event_that_is_only_pushed_becomes_no_tool_through_it() -> None:
    pushed = EventSpec(name=parse_event_name("a:push"), pushed=True)
    said = RuntimeDefinition(description="d", event_patterns=("a:one", "a:push"))
    made = RuntimeCapability(
        id="m0", author="operator", versions=(RuntimeVersion(1, said, "", "", 0.0),)
    )
    catalogue = compiled({"m0": made}, make_universe([*UNIVERSE.specs.values(), pushed]))
    grant = two("none", "user").grant("bob", catalogue)
    assert grant.events == {"a:one", "a:push", "c:two"}
    assert grant.exposed == {"a:one", "c:two"}


def test_denials_of_the_holder_beat_it() -> None:
    fleet, catalogue = two("most", "stern"), one_made("ann", requires=("all_b",))
    assert fleet.grant("bob", catalogue).events == {"c:two", "b:one", "b:two", "d:key"}
    assert fleet.grant("bob", catalogue).claude_tools == frozenset()


def test_two_authors_do_not_hold_something_because_of_each_other_alone() -> None:
    said = RuntimeDefinition(description="d", event_patterns=("a:*",))
    made = {
        name: RuntimeCapability(
            id=name,
            author=author,
            author_key=author,
            versions=(RuntimeVersion(1, said, "", "", 0.0),),
        )
        for name, author in (("m0", "ann"), ("m1", "bob"))
    }
    catalogue, fleet = compiled(made), Fleet()
    for name, held in (("ann", "m1"), ("bob", "m0")):
        spec = AgentSpec(capabilities={held: True})
        fleet.add(Agent(id=name, public_key=name, spec=spec))
    assert fleet.grant("ann", catalogue).events == {"c:two"}


def test_a_runtime_capability_requires_none_that_was_made() -> None:
    said = RuntimeDefinition(description="d", requires=("m1",), event_patterns=("a:one",))
    made = {
        "m0": RuntimeCapability(
            id="m0", author="operator", versions=(RuntimeVersion(1, said, "", "", 0.0),)
        )
    }
    catalogue = compiled(made)
    assert catalogue.runtime_capabilities["m0"].inert
    assert two("most", "user").grant("bob", catalogue).events == {"c:two"}
