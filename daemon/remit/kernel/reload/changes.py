"""Telling living agents what they gained and lost."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from remit.kernel.authority.plans import Holdings, changes_between
from remit.model.principal import DAEMON_ID
from remit.policy.plan import GrantChange

if TYPE_CHECKING:
    from remit.kernel.bus.delivery import Courier

CHANGED_EVENT = "permission:changed"


def tell_changes(courier: "Courier", before: Holdings, after: Holdings, *, revision: int) -> int:
    """Tell each agent what it gained and lost; answers how many agents are affected.

    For a change of agents themselves, take `holdings` of their subtree before and after it.
    """
    return tell(courier, changes_between(before, after), revision=revision)


def tell(courier: "Courier", changes: Mapping[str, GrantChange], *, revision: int) -> int:
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
