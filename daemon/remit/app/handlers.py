"""Which handlers there are: ours, those of the configuration, and those of installed plug-ins."""

import sys
from pathlib import Path

import msgspec

from remit.config.settings import Settings
from remit.runtime.handler import Handler
from remit.runtime.loading import ModuleFailure, load_handlers, plugin_modules
from remit.runtime.registry import REGISTRY

BUILT_IN = (
    "remit.handlers.agent",
    "remit.handlers.agent_view",
    "remit.handlers.audit",
    "remit.handlers.capability",
    "remit.handlers.composition",
    "remit.handlers.config",
    "remit.handlers.conversation",
    "remit.handlers.event",
    "remit.handlers.key",
    "remit.handlers.message",
    "remit.handlers.permission",
    "remit.handlers.review",
    "remit.handlers.state",
    "remit.handlers.system",
)


class LoadedHandlers(msgspec.Struct, frozen=True):
    """All handlers by event, and the modules that could not be loaded."""

    handlers: dict[str, Handler]
    failures: tuple[ModuleFailure, ...]


def load_all_handlers(settings: Settings) -> LoadedHandlers:
    """Import every module that offers handlers. Modules beside the settings file are found too."""
    for folder in settings.handler_paths:
        if str(folder) not in sys.path:
            sys.path.append(str(Path(folder)))
    failures = load_handlers(BUILT_IN, trusted=True)
    others = dict.fromkeys([*settings.handlers, *plugin_modules()])
    failures += load_handlers(others)
    return LoadedHandlers(REGISTRY.handlers(), failures)
