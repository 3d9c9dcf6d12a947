"""The features of remit, in the order in which they open; they close in the opposite one.

To take a feature out, take its line out: the daemon starts without it, and its events are unknown.
"""

from collections.abc import Iterable

import msgspec

from remit.app.manifest import other_modules
from remit.config.settings.table import Settings
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
    registry,
    reviews,
    sessions,
    skills,
    state,
    tools,
    upstreams,
    web,
)
from remit.kernel.dispatch.handler import Handler
from remit.kernel.dispatch.registry import REGISTRY, ModuleFailure, load_handlers
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
    registry.FEATURE,
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


class LoadedHandlers(msgspec.Struct, frozen=True):
    """All handlers by event, and the modules that could not be loaded."""

    handlers: dict[str, Handler]
    failures: tuple[ModuleFailure, ...]


def load_all_handlers(settings: Settings, features: Iterable[Feature] = FEATURES) -> LoadedHandlers:
    """Import every module that offers handlers. Modules beside the settings file are found too."""
    others = other_modules(settings)
    failures = load_handlers(event_modules(features), trusted=True)
    failures += load_handlers(others)
    left_out = set(event_modules()).difference(event_modules(features))
    found = REGISTRY.handlers()
    handlers = {name: one for name, one in found.items() if one.module not in left_out}
    return LoadedHandlers(handlers, failures)
