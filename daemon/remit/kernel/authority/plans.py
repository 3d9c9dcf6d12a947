"""What changes for whom when a revision follows another: for profiles, and for living agents.

Many agents share few grants, so each pair of grants is compared once, however many agents hold it.
"""

from collections.abc import Iterable, Mapping

from remit.kernel.authority.fleet import NOTHING, Fleet
from remit.model.grant import Grant
from remit.policy.catalogue import Catalogue
from remit.policy.plan import NO_CHANGE, AgentChange, GrantChange, Plan, compare, plan

Holdings = Mapping[str, Grant]
"""What each of some agents may do, by name."""


def holdings(
    fleet: Fleet, catalogue: Catalogue, agents: Iterable[str] | None = None
) -> dict[str, Grant]:
    """What agents may do in a revision; all living ones when none are named."""
    names = fleet.names() if agents is None else agents
    return {name: fleet.grant(name, catalogue) for name in names}


def changes_between(
    before: Holdings, after: Holdings, altered: frozenset[str] = frozenset()
) -> dict[str, GrantChange]:
    """What changed, for each agent of which something did; one that is missing held nothing.

    `altered` are the events whose tools are described otherwise.
    """
    found: dict[str, GrantChange] = {}
    # The holdings keep both grants alive while their ids are keys here.
    compared: dict[tuple[int, int], GrantChange] = {}
    for name in before.keys() | after.keys():
        old, new = before.get(name, NOTHING), after.get(name, NOTHING)
        key = (id(old), id(new))
        change = compared.get(key)
        if change is None:
            change = compared[key] = compare(old, new, altered)
        if not change.is_empty:
            found[name] = change
    return found


def plan_between(
    fleet: Fleet,
    before: Catalogue,
    after: Catalogue,
    *,
    altered: frozenset[str] = frozenset(),
    agents: Iterable[str] | None = None,
) -> Plan:
    """What one revision changes against another: for each profile, and for each living agent.

    The one way to plan: every edit, review and command comes here. It may run in a thread, because
    it remembers rights in copies of the fleet. With `agents`, only these are looked at.
    """
    names = fleet.names() if agents is None else list(agents)
    old, new = fleet.copy(), fleet.copy()
    living = changes_between(
        holdings(old, before, names), holdings(new, after, names), altered=altered
    )
    return plan(
        profile_grants(old, before),
        profile_grants(new, after),
        agents=describe_agents(fleet, before, after, living, names),
        altered=altered,
    )


def profile_grants(fleet: Fleet, catalogue: Catalogue) -> dict[str, Grant]:
    """What each profile grants, with what capabilities made at run time add to it now."""
    return {name: fleet.with_made(one, catalogue) for name, one in catalogue.grants.items()}


def describe_agents(
    fleet: Fleet,
    before: Catalogue,
    after: Catalogue,
    changes: Mapping[str, GrantChange],
    names: Iterable[str],
) -> dict[str, AgentChange]:
    """The changes of living agents with what makes each of them what it is; widening ones first.

    Whoever loses its profile is named too, even if it held no more than everybody has.
    """
    gone = before.compositions.keys() - after.compositions.keys()
    found = {}
    for name in names:
        agent, change = fleet.get(name), changes.get(name)
        is_bereft = agent is not None and agent.spec.profile in gone
        if agent is not None and (change is not None or is_bereft):
            change = NO_CHANGE if change is None else change
            found[name] = AgentChange(change, agent.spec.profile, agent.parent, is_bereft)
    order = sorted(found, key=lambda name: (not found[name].change.widens, name))
    return {name: found[name] for name in order}
