"""Why somebody holds an event by what was made at run time: the rule, and who stands for it."""

from remit.errors import RemitError
from remit.model.agent import Agent
from remit.model.place import Place
from remit.policy.catalogue import Catalogue
from remit.policy.delegate import resolve_agent
from remit.policy.explain import Rule
from remit.policy.made import present_share
from remit.runtime.fleet import Fleet


def made_rules(fleet: Fleet, catalogue: Catalogue, agent: Agent, event: str) -> list[Rule]:
    """The rules by which made capabilities of an agent give it an event now, by their ids."""
    bit = catalogue.universe.bits_of([catalogue.universe.canonical(event)])
    try:
        shares = (
            () if agent.spec.inherit else resolve_agent(catalogue, agent.spec, lives=True).shares
        )
    except RemitError:  # its profile is gone: it holds nothing
        return []
    rules = []
    for share in shares:
        ceiling = fleet.author_ceiling(share.author, share.author_key, catalogue)
        if present_share(share, ceiling)[0] & bit:
            rules += _rules_of(catalogue, share.capability, event, bit)
    return rules


def _rules_of(catalogue: Catalogue, name: str, event: str, bit: int) -> list[Rule]:
    made = catalogue.made[name]
    place = made.capability.place
    rules = [
        Rule(str(placed), place, name, (name,))
        for placed in made.capability.event_patterns or ()
        if catalogue.universe.granted_by(placed.pattern) & bit
    ]
    return rules + [
        Rule(event, _placed(catalogue, member), name, (name, member))
        for member in made.members
        if catalogue.own_events[member] & bit
    ]


def _placed(catalogue: Catalogue, name: str) -> Place:
    return catalogue.capabilities[name].place
