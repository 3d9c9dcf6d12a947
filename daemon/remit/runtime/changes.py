"""What living agents gained and lost, and telling them.

Many agents share few grants, so each pair of grants is compared once, however many agents hold it.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from remit.model.grant import Grant
from remit.model.principal import DAEMON_ID
from remit.policy.catalogue import Catalogue
from remit.policy.plan import Change, compare
from remit.runtime.fleet import NOTHING, Fleet

if TYPE_CHECKING:
    from remit.runtime.authority import Revision
    from remit.runtime.courier import Courier

CHANGED_EVENT = "permission:changed"

Holdings = Mapping[str, Grant]
"""What each of some agents may do, by name."""


def holdings(
    fleet: Fleet, catalogue: Catalogue, agents: Iterable[str] | None = None
) -> dict[str, Grant]:
    """What agents may do in a revision; all living ones when none are named."""
    names = fleet.names() if agents is None else agents
    return {name: fleet.grant(name, catalogue) for name in names}


def altered_tools(before: "Revision", after: "Revision") -> frozenset[str]:
    """The events of both revisions that tool lists describe otherwise."""
    if before.table is after.table:
        return frozenset()
    was, now = before.table.by_event, after.table.by_event
    return frozenset(
        event
        for event in was.keys() & now.keys()
        if was[event] is not now[event] and was[event].tool_parts != now[event].tool_parts
    )


def changes_between(
    before: Holdings, after: Holdings, altered: frozenset[str] = frozenset()
) -> dict[str, Change]:
    """What changed, for each agent of which something did; one that is missing held nothing.

    `altered` are the events whose tools are described otherwise.
    """
    found: dict[str, Change] = {}
    # The holdings keep both grants alive while their ids are keys here.
    compared: dict[tuple[int, int], Change] = {}
    for name in before.keys() | after.keys():
        old, new = before.get(name, NOTHING), after.get(name, NOTHING)
        key = (id(old), id(new))
        change = compared.get(key)
        if change is None:
            change = compared[key] = compare(old, new, altered)
        if not change.is_empty:
            found[name] = change
    return found


def tell_changes(courier: "Courier", before: Holdings, after: Holdings, *, revision: int) -> int:
    """Tell each agent what it gained and lost; answers how many agents are affected.

    For a change of agents themselves, take `holdings` of their subtree before and after it.
    """
    return tell(courier, changes_between(before, after), revision=revision)


def tell(courier: "Courier", changes: Mapping[str, Change], *, revision: int) -> int:
    """Tell agents of changes that are known already."""
    for name, change in changes.items():
        data = {
            "gained": change.granted,
            "lost": change.revoked,
            "tools_gained": change.tools_granted,
            "tools_lost": change.tools_revoked,
            "limits_changed": change.limits_changed,
            "approval_added": change.approval_added,
            "approval_removed": change.approval_removed,
            "tools_shown": change.tools_shown,
            "tools_hidden": change.tools_hidden,
            "tools_changed": change.tools_changed,
            "exposure_changed": change.exposure_changed,
            "pinned_added": change.pinned_added,
            "pinned_removed": change.pinned_removed,
            "revision": revision,
        }
        courier.tell(name, CHANGED_EVENT, data, DAEMON_ID)
        courier.lists_changed(name)
    return len(changes)
