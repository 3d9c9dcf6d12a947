"""All living agents: who is whose child, and what each may do now.

An agent's rights are its own AND those of all its living ancestors, so narrowing or ending a parent
acts on the whole tree at once. Nothing is stored about rights: they are computed from the revision
in force, and remembered until it, or any agent, changes.
"""

from collections.abc import Iterable, Iterator

from remit.errors import RemitError
from remit.model.agent import Agent
from remit.model.grant import Grant
from remit.model.principal import OPERATOR, OPERATOR_ID, Principal
from remit.policy.catalogue import Catalogue
from remit.policy.delegate import resolve_agent
from remit.policy.resolve import confine

_CACHE_SIZE = 50_000

NOTHING = Grant(profile="", revision=0, bits=0, events=frozenset())


class Fleet:
    """The tree of agents."""

    def __init__(self) -> None:
        self._agents: dict[str, Agent] = {}
        self._children: dict[str, dict[str, None]] = {}
        self._principals: dict[str, Principal] = {OPERATOR_ID: OPERATOR}
        self._catalogue: Catalogue | None = None
        self._own: dict[str, Grant] = {}
        self._confined: dict[tuple[int, int], tuple[Grant, Grant, Grant]] = {}
        self._effective: dict[str, Grant] = {}

    def __len__(self) -> int:
        return len(self._agents)

    def __contains__(self, agent: str) -> bool:
        return agent in self._agents

    # ---- the tree ----

    def add(self, agent: Agent) -> None:
        """Take in an agent; its parent must live."""
        self._agents[agent.id] = agent
        self._principals[agent.id] = Principal(agent.id, "agent", agent.spec.profile)
        if agent.parent is not None:
            self._children.setdefault(agent.parent, {})[agent.id] = None

    def replace(self, agent: Agent) -> None:
        """Change an agent; what follows for its descendants is computed when it is asked for."""
        self._agents[agent.id] = agent
        self._principals[agent.id] = Principal(agent.id, "agent", agent.spec.profile)
        self._effective.clear()
        if len(self._confined) > _CACHE_SIZE and self._catalogue is not None:
            self._forget_rights(self._catalogue)

    def remove(self, agents: Iterable[str]) -> None:
        """Take agents out: they stop being anybody at once."""
        for name in agents:
            gone = self._agents.pop(name, None)
            self._principals.pop(name, None)
            self._children.pop(name, None)
            self._effective.pop(name, None)
            if gone is not None and gone.parent is not None:
                siblings = self._children.get(gone.parent, {})
                siblings.pop(name, None)

    def get(self, agent: str) -> Agent | None:
        """An agent, or None."""
        return self._agents.get(agent)

    def principal(self, name: str) -> Principal | None:
        """The living principal of that name, or None."""
        return self._principals.get(name)

    def all(self) -> list[Agent]:
        """All agents by their position."""
        return sorted(self._agents.values(), key=lambda agent: agent.position)

    def children(self, agent: str) -> list[str]:
        """The children of an agent, oldest first."""
        return list(self._children.get(agent, ()))

    def subtree(self, agent: str) -> list[str]:
        """An agent and all its descendants, parents before children."""
        found = [agent]
        for name in found:  # grows while it is walked: breadth first
            found += self._children.get(name, ())
        return found

    def ancestors(self, agent: str) -> Iterator[Agent]:
        """The parent, its parent, and so on."""
        present = self._agents.get(agent)
        while present is not None and present.parent is not None:
            present = self._agents.get(present.parent)
            if present is not None:
                yield present

    def depth(self, agent: str) -> int:
        """How many ancestors an agent has."""
        return sum(1 for _ in self.ancestors(agent))

    def is_under(self, agent: str, ancestor: str) -> bool:
        """Tell whether an agent is another one, or descends from it."""
        return agent == ancestor or any(one.id == ancestor for one in self.ancestors(agent))

    # ---- rights ----

    def grant(self, agent: str, catalogue: Catalogue) -> Grant:
        """What an agent may do in a revision: its own rights under those of all its ancestors.

        An agent whose profile vanished or no longer resolves holds nothing.
        """
        if catalogue is not self._catalogue:
            self._forget_rights(catalogue)
        found = self._effective.get(agent)
        return self._compute(agent, catalogue) if found is None else found

    def _forget_rights(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._own.clear()
        self._confined.clear()
        self._effective.clear()

    def _compute(self, agent: str, catalogue: Catalogue) -> Grant:
        """Walk down from the oldest ancestor whose rights are not known yet."""
        path = [agent, *(one.id for one in self.ancestors(agent))]
        grant = NOTHING
        for name in reversed(path):
            known = self._effective.get(name)
            grant = known or self._under_parent(name, grant, catalogue)
            self._effective[name] = grant
        return grant

    def _under_parent(self, name: str, above: Grant, catalogue: Catalogue) -> Grant:
        agent = self._agents.get(name)
        if agent is None:
            return NOTHING
        if agent.parent is None:
            return self._own_grant(agent, catalogue)
        own = above if agent.spec.inherit else self._own_grant(agent, catalogue)
        # Many agents share few profiles, so their rights are computed once. The entry keeps both
        # grants alive: an id that could be reused would hand out somebody else's rights.
        key = (id(own), id(above))
        if key not in self._confined:
            self._confined[key] = (own, above, confine(catalogue, own, above))
        return self._confined[key][2]

    def _own_grant(self, agent: Agent, catalogue: Catalogue) -> Grant:
        key = repr(agent.spec) if agent.spec.is_changed else agent.spec.profile
        found = self._own.get(key)
        if found is None:
            try:
                found = resolve_agent(catalogue, agent.spec)
            except RemitError:
                found = NOTHING  # closed: a definition that went away takes its grants along
            self._own[key] = found
        return found
