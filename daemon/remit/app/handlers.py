"""Which handlers there are: ours, those of the configuration, and those of installed plug-ins."""

from collections.abc import Iterable

import msgspec

from remit.app.features import FEATURES, event_modules
from remit.app.manifest import other_modules
from remit.config.settings.table import Settings
from remit.kernel.dispatch.handler import Handler
from remit.kernel.dispatch.loading import ModuleFailure, load_handlers
from remit.kernel.dispatch.registry import REGISTRY
from remit.kernel.feature import Feature


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
