"""Which handlers there are: ours, those of the configuration, and those of installed plug-ins."""

import msgspec

from remit.app.manifest import other_modules
from remit.config.settings.table import Settings
from remit.kernel.dispatch.handler import Handler
from remit.kernel.dispatch.loading import ModuleFailure, load_handlers
from remit.kernel.dispatch.registry import REGISTRY

BUILT_IN = (
    "remit.features.builtins.events",
    "remit.features.files.events",
    "remit.features.builtins.events",
    "remit.features.builtins.testing",
    "remit.features.builtins.testing",
    "remit.features.web.events",
    "remit.features.agents.events",
    "remit.features.agents.runtime",
    "remit.features.agents.views",
    "remit.features.audit.events",
    "remit.features.cards.events",
    "remit.features.bill.events",
    "remit.features.permissions.capabilities",
    "remit.features.capabilities.events",
    "remit.features.permissions.profiles",
    "remit.features.config.events",
    "remit.features.messages.events",
    "remit.features.discovery.events",
    "remit.features.messages.events",
    "remit.features.extensions.events",
    "remit.features.agents.keys",
    "remit.features.messages.events",
    "remit.features.permissions.check",
    "remit.features.reviews.events",
    "remit.features.sessions.events",
    "remit.features.skills.events",
    "remit.features.state.events",
    "remit.features.tools.events",
    "remit.features.agents.keys",
    "remit.features.upstreams.events",
)


class LoadedHandlers(msgspec.Struct, frozen=True):
    """All handlers by event, and the modules that could not be loaded."""

    handlers: dict[str, Handler]
    failures: tuple[ModuleFailure, ...]


def load_all_handlers(settings: Settings) -> LoadedHandlers:
    """Import every module that offers handlers. Modules beside the settings file are found too."""
    others = other_modules(settings)
    failures = load_handlers(BUILT_IN, trusted=True)
    failures += load_handlers(others)
    return LoadedHandlers(REGISTRY.handlers(), failures)
