"""Which handlers there are: ours, those of the configuration, and those of installed plug-ins."""

import sys
from pathlib import Path

import msgspec

from remit.config.settings_table import Settings
from remit.runtime.handler import Handler
from remit.runtime.loading import ModuleFailure, load_handlers, plugin_modules
from remit.runtime.registry import REGISTRY

BUILT_IN = (
    "remit.builtins.current_time",
    "remit.builtins.session_file_system",
    "remit.builtins.stateless_todo_list",
    "remit.builtins.test_math",
    "remit.builtins.test_weather",
    "remit.builtins.web_fetch",
    "remit.handlers.agent",
    "remit.handlers.agent_runtime",
    "remit.handlers.agent_view",
    "remit.handlers.audit",
    "remit.handlers.awareness",
    "remit.handlers.bill",
    "remit.handlers.capability",
    "remit.handlers.capability_making",
    "remit.handlers.composition",
    "remit.handlers.config",
    "remit.handlers.conversation",
    "remit.handlers.discovery",
    "remit.handlers.event",
    "remit.handlers.extension",
    "remit.handlers.key",
    "remit.handlers.message",
    "remit.handlers.permission",
    "remit.handlers.review",
    "remit.handlers.session",
    "remit.handlers.skill",
    "remit.handlers.state",
    "remit.handlers.system",
    "remit.handlers.token",
    "remit.handlers.upstream",
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
