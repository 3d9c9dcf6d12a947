"""All living agents: who is whose child, and what each may do now.

An agent's rights are its own AND those of all its living ancestors, under the sessions that bind
any of them, so narrowing or ending a parent or a session acts on the whole tree at once. Nothing is
stored about rights: they are computed from the revision in force, and remembered until it, or any
agent or session, changes.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from remit.errors import RemitError
from remit.kernel.authority.sessions import Sessions
from remit.model.grant import Grant, Session, SessionKey
from remit.model.principal import OPERATOR, OPERATOR_ID, Agent, AgentSpec, Principal
from remit.policy.catalogue import Catalogue
from remit.policy.decide import confine
from remit.policy.delegate import inherit, remainder, resolve_agent, with_shares

_CACHE_SIZE = 50_000

NOTHING = Grant(profile="", revision=0, bits=0, events=frozenset())


class Fleet:
    """The tree of agents."""

    def __init__(self) -> None:
        self._agents: dict[str, Agent] = {}
        self._children: dict[str, dict[str, None]] = {}
        self._principals: dict[str, Principal] = {OPERATOR_ID: OPERATOR}
        self._serial = 0
        self._catalogue: Catalogue | None = None
        self._own: dict[tuple[str, frozenset[str]], Grant] = {}
        self._confined: dict[tuple[int, int], tuple[Grant, Grant, Grant]] = {}
        self._inherited: dict[tuple[str, int], tuple[Grant, Grant]] = {}
        self._effective: dict[str, Grant] = {}
        self._ground: dict[str, Grant] = {}
        self.sessions = Sessions()
        self.version = 0
        """Another one after anything that rights are computed from, beside the revision."""

    def __len__(self) -> int:
        return len(self._agents)

    def __contains__(self, agent: str) -> bool:
        return agent in self._agents

    # ---- the tree ----

    def add(self, agent: Agent) -> None:
        """Take in an agent; its parent must live."""
        self.version += 1
        self._forget_shared()
        self._agents[agent.id] = agent
        self._serial += 1
        self._principals[agent.id] = Principal(
            agent.id, "agent", agent.spec.profile, serial=self._serial
        )
        if agent.parent is not None:
            self._children.setdefault(agent.parent, {})[agent.id] = None
        self._bound_memory()

    def replace(self, agent: Agent) -> None:
        """Change an agent; what follows for its descendants is computed when it is asked for."""
        self.version += 1
        known = self._principals.get(agent.id)
        serial = 0 if known is None else known.serial
        self._agents[agent.id] = agent
        self._principals[agent.id] = Principal(agent.id, "agent", agent.spec.profile, serial=serial)
        self._forget_effective()
        self._bound_memory()

    def _bound_memory(self) -> None:
        """What was computed for agents that are gone must not pile up."""
        remembered = max(len(self._own), len(self._confined), len(self._inherited))
        if remembered > _CACHE_SIZE and self._catalogue is not None:
            self._forget_rights(self._catalogue)

    def remove(self, agents: Iterable[str]) -> None:
        """Take agents out: they stop being anybody at once."""
        self.version += 1
        self._forget_shared()
        for name in agents:
            gone = self._agents.pop(name, None)
            self._principals.pop(name, None)
            self._children.pop(name, None)
            self._effective.pop(name, None)
            self._ground.pop(name, None)
            self.sessions.drop(name)
            if gone is not None and gone.parent is not None:
                siblings = self._children.get(gone.parent, {})
                siblings.pop(name, None)

    def get(self, agent: str) -> Agent | None:
        """An agent, or None."""
        return self._agents.get(agent)

    def principal(self, name: str) -> Principal | None:
        """The living principal of that name, or None."""
        return self._principals.get(name)

    def lives(self, principal: Principal) -> bool:
        """Tell whether this is still the one of its name, and not a later one."""
        present = self._principals.get(principal.id)
        return present is not None and present.serial == principal.serial

    def all(self) -> list[Agent]:
        """All agents by their position."""
        return sorted(self._agents.values(), key=lambda agent: (agent.position, agent.id))

    def names(self) -> list[str]:
        """The names of all agents, in no order that means anything."""
        return list(self._agents)

    def children(self, agent: str) -> list[str]:
        """The children of an agent, oldest first."""
        return list(self._children.get(agent, ()))

    def subtree(self, agent: str) -> list[str]:
        """An agent and all its descendants, parents before children."""
        found = [agent]
        for name in found:  # grows while it is walked: breadth first
            found += self._children.get(name, ())
        return found

    def count_below(self, agent: str) -> int:
        """How many descendants an agent has."""
        return len(self.subtree(agent)) - 1

    def ancestors(self, agent: str) -> Iterator[Agent]:
        """The parent, its parent, and so on."""
        present = self._agents.get(agent)
        while present is not None and present.parent is not None:
            present = self._agents.get(present.parent)
            if present is not None:
                yield present

    def has_parent_of(self, agent: Agent) -> bool:
        """Tell whether the very principal that spawned an agent lives."""
        parent = self._agents.get(agent.parent or "")
        if parent is None:
            return agent.parent is None
        return parent.public_key == agent.spec.parent_key

    def depth(self, agent: str) -> int:
        """How many ancestors an agent has."""
        return sum(1 for _ in self.ancestors(agent))

    def root(self, agent: str) -> str:
        """The oldest ancestor of an agent, or itself."""
        found = agent
        for one in self.ancestors(agent):
            found = one.id
        return found

    def is_under(self, agent: str, ancestor: str) -> bool:
        """Tell whether an agent is another one, or descends from it."""
        return agent == ancestor or any(one.id == ancestor for one in self.ancestors(agent))

    # ---- sessions ----

    def put_session(self, session: Session) -> None:
        """Take in a new or changed session; it counts from now on for all that it binds."""
        self.version += 1
        self._forget_effective()
        self.sessions.put(session)

    def line(self, agent: str) -> list[str]:
        """An agent, all above it, and the operator, who is above everybody."""
        above = [one.id for one in self.ancestors(agent)]
        return [agent, *above] if agent == OPERATOR_ID else [agent, *above, OPERATOR_ID]

    def in_session(self, agent: str, session: str, grant: Grant, catalogue: Catalogue) -> Grant:
        """What is left of an agent's grant in a request that names a session.

        A name that neither it nor anybody above it has opened is a label, and takes nothing.
        """
        return self.sessions.seat(agent, session, grant, catalogue, self.line)

    def told_of_session(self, agent: str, session: str | None) -> dict[str, Any]:
        """What a refused request is told of the session it named; nothing when it is a label."""
        found = self.sessions.named(session, self.line(agent)) if session else ()
        closed = {} if all(one.is_open for one in found) else {"closed": True}
        return {"session": session} | closed if found else {}

    def session_key(self, agent: str, name: str | None) -> SessionKey:
        """The session that an agent works in under a name; without one the one it was spawned into.

        It works in somebody else's only when it, or one between the two, was bound to it.
        """
        if not name:
            found = self._agents.get(agent)
            name = (found.spec.session or "") if found else ""
        owner = self._session_owner(agent, name)
        found = self._agents.get(owner)
        return SessionKey(owner, "" if found is None else found.public_key, name)

    def _session_owner(self, agent: str, name: str) -> str:
        """Whose session of a name an agent works in: its own, else the nearest it is bound to."""
        opened = {one.owner: one for one in self.sessions.named(name, self.line(agent))}
        bound: set[str] = set()
        for holder in self.line(agent):
            session = opened.get(holder)
            if session is not None and (holder == agent or session.id in bound):
                return holder
            found = self._agents.get(holder)
            bound.update(found.spec.bound if found else ())
        return agent

    # ---- rights ----

    def copy(self) -> "Fleet":
        """The same agents, remembering rights for itself: to try a revision, also in a thread."""
        other = Fleet()
        other._agents = dict(self._agents)
        other.sessions = self.sessions.copy()
        return other

    def grant(self, agent: str, catalogue: Catalogue) -> Grant:
        """What an agent may do in a revision: its own rights under those of all its ancestors.

        An agent whose profile vanished or no longer resolves holds what everybody has.
        """
        if agent not in self._agents:
            return NOTHING
        if catalogue is not self._catalogue:
            self._forget_rights(catalogue)
        found = self._effective.get(agent)
        return self._compute(agent, catalogue, self._effective) if found is None else found

    def ground(self, agent: str, catalogue: Catalogue) -> Grant:
        """What an agent may do without anything that was made at run time.

        Only this can be put into a capability that is made: so no two authors hold something
        because of each other alone.
        """
        if agent not in self._agents:
            return NOTHING
        if catalogue is not self._catalogue:
            self._forget_rights(catalogue)
        found = self._ground.get(agent)
        return self._compute(agent, catalogue, self._ground) if found is None else found

    def author_ceiling(self, author: str, key: str, catalogue: Catalogue) -> Grant | None:
        """What somebody who made a capability holds now; None: the operator, who holds all."""
        if author == OPERATOR_ID:
            return None
        found = self._agents.get(author)
        if found is None or found.public_key != key:
            return NOTHING
        return self.ground(author, catalogue)

    def with_made(self, grant: Grant, catalogue: Catalogue) -> Grant:
        """A grant with what the capabilities made at run time add to it now."""
        if not grant.shares:
            return grant
        return with_shares(
            catalogue, grant, lambda author, key: self.author_ceiling(author, key, catalogue)
        )

    def unshared_grant(self, agent: str, catalogue: Catalogue) -> Grant:
        """What the rules of an agent alone give it, with its shares still to be added."""
        found = self._agents.get(agent)
        if found is None:
            return NOTHING
        if catalogue is not self._catalogue:
            self._forget_rights(catalogue)
        return self._own_grant(found, catalogue)

    def own_grant(self, agent: str, catalogue: Catalogue) -> Grant:
        """What an agent would hold if its ancestors held everything."""
        found = self._agents.get(agent)
        if found is None:
            return NOTHING
        if catalogue is not self._catalogue:
            self._forget_rights(catalogue)
        if not found.spec.inherit:
            return self.with_made(self._own_grant(found, catalogue), catalogue)
        parent = found.parent
        above = NOTHING if parent is None else self.own_grant(parent, catalogue)
        return self._own_under(found, above, catalogue)

    def _forget_effective(self) -> None:
        self._effective.clear()
        self._ground.clear()

    def _forget_shared(self) -> None:
        """What somebody made gives others something only while it lives."""
        if self._catalogue is not None and self._catalogue.runtime_capabilities:
            self._effective.clear()

    def _forget_rights(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._own.clear()
        self._confined.clear()
        self._inherited.clear()
        self._forget_effective()
        self.sessions.forget()

    def _compute(self, agent: str, catalogue: Catalogue, memory: dict[str, Grant]) -> Grant:
        """Walk down from the oldest ancestor whose rights are not known yet."""
        path = [agent, *(one.id for one in self.ancestors(agent))]
        grant = NOTHING
        for name in reversed(path):
            known = memory.get(name)
            grant = known or self._bound(
                name, self._under_parent(name, grant, catalogue, memory), catalogue
            )
            memory[name] = grant
        return grant

    def _under_parent(
        self, name: str, above: Grant, catalogue: Catalogue, memory: dict[str, Grant]
    ) -> Grant:
        agent = self._agents.get(name)
        if agent is None or agent.spec.status != "active":
            return NOTHING
        if agent.parent is None and agent.spec.inherit:
            return NOTHING
        own = self._own_under(agent, above, catalogue)
        is_shared = bool(own.shares) and memory is self._effective
        own = self.with_made(own, catalogue) if is_shared else own
        if agent.parent is None:
            return own
        if is_shared:
            return confine(catalogue, own, above)
        # Many agents share few profiles, so their rights are computed once. The entry keeps both
        # grants alive: an id that could be reused would hand out somebody else's rights.
        key = (id(own), id(above))
        if key not in self._confined:
            self._confined[key] = (own, above, confine(catalogue, own, above))
        return self._confined[key][2]

    def _bound(self, name: str, grant: Grant, catalogue: Catalogue) -> Grant:
        agent = self._agents.get(name)
        if agent is None or not agent.spec.bound:
            return grant
        return self.sessions.narrowed(catalogue, grant, tuple(agent.spec.bound))

    def _own_under(self, agent: Agent, above: Grant, catalogue: Catalogue) -> Grant:
        if not agent.spec.inherit:
            return self._own_grant(agent, catalogue)
        if not agent.spec.is_changed:
            return above
        key = (agent.spec.rights, id(above))
        if key not in self._inherited:
            self._inherited[key] = (above, _closed(_inherit, catalogue, agent.spec, above))
        return self._inherited[key][1]

    def _own_grant(self, agent: Agent, catalogue: Catalogue) -> Grant:
        reviewed = catalogue.reviewed_for(agent.id, agent.public_key)
        key = (agent.spec.rights, reviewed)
        found = self._own.get(key)
        if found is None:
            found = self._own[key] = _closed(_by_itself, catalogue, agent.spec, reviewed)
        return found


_inherit = partial(inherit, lives=True)


def _by_itself(catalogue: Catalogue, spec: AgentSpec, reviewed: frozenset[str]) -> Grant:
    """A definition that went away takes its grants along, but for what everybody has."""
    try:
        return resolve_agent(catalogue, spec, lives=True, reviewed=reviewed)
    except RemitError:
        return remainder(catalogue, spec)


def _closed(resolve: Callable[..., Grant], *arguments: Any) -> Grant:
    """What cannot be computed gives nothing."""
    try:
        return resolve(*arguments)
    except RemitError:
        return NOTHING
