"""The features of remit, in the order in which they open; they close in the opposite one.

To take a feature out, take its line out: the daemon starts without it, and its events are unknown.
"""

from collections.abc import Iterable

from remit.features import (
    agents,
    audit,
    bill,
    builtins,
    capabilities,
    cards,
    config,
    discovery,
    extensions,
    files,
    messages,
    permissions,
    reviews,
    sessions,
    skills,
    state,
    tools,
    upstreams,
    web,
)
from remit.kernel.feature import Feature

FEATURES: tuple[Feature, ...] = (
    agents.FEATURE,
    audit.FEATURE,
    bill.FEATURE,
    builtins.FEATURE,
    capabilities.FEATURE,
    config.FEATURE,
    messages.FEATURE,
    permissions.FEATURE,
    reviews.FEATURE,
    sessions.FEATURE,
    state.FEATURE,
    files.FEATURE,
    web.FEATURE,
    tools.FEATURE,
    upstreams.FEATURE,
    discovery.FEATURE,
    cards.FEATURE,
    skills.FEATURE,
    extensions.FEATURE,
)


def served(features: Iterable[Feature] = FEATURES) -> tuple[Feature, ...]:
    """The features of a list whose requirements are in it as well."""
    found = tuple(features)
    while True:
        names = {feature.name for feature in found}
        rest = tuple(feature for feature in found if names.issuperset(feature.requires))
        if rest == found:
            return found
        found = rest


def event_modules(features: Iterable[Feature] = FEATURES) -> tuple[str, ...]:
    """The modules with the handlers of features."""
    return tuple(module for feature in served(features) for module in feature.events)
