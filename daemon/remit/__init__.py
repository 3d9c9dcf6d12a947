"""remit decides, explains and serves what each agent of a fleet may do."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remit.app.store import Store
    from remit.features.files.store import FileLimits
    from remit.kernel.dispatch.context import Context
    from remit.kernel.dispatch.registry import event_handler
    from remit.model.grant import SessionKey

__version__ = "0.1.0"
__all__ = ["Context", "FileLimits", "SessionKey", "Store", "__version__", "event_handler"]

_HOMES = {
    "Context": "remit.kernel.dispatch.context",
    "FileLimits": "remit.features.files.store",
    "SessionKey": "remit.model.grant",
    "Store": "remit.app.store",
    "event_handler": "remit.kernel.dispatch.registry",
}
_FORMER = {
    "remit.model.session": "SessionKey",
    "remit.runtime": "",
    "remit.runtime.context": "Context",
    "remit.runtime.registry": "event_handler",
    "remit.store": "",
    "remit.store.protocol": "Store",
    "remit.store.records": "FileLimits",
}
"""What pages of earlier versions taught plug-ins to import, and what they found there."""


def __getattr__(name: str) -> Any:
    """What plug-ins import from here; loaded when asked for, so that nobody else pays."""
    if f"remit.{name}" in _FORMER:
        return sys.modules[f"remit.{name}"]
    if name not in _HOMES:
        raise AttributeError(f"module 'remit' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


class _FormerModule(ModuleType):
    """A module that has moved: it still gives plug-ins what they import, and warns."""

    def __getattr__(self, name: str) -> Any:
        if f"{self.__name__}.{name}" in _FORMER:
            return sys.modules[f"{self.__name__}.{name}"]
        if name != _FORMER[self.__name__] or not name:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        import warnings  # noqa: PLC0415 - only where a plug-in is behind

        message = f"{self.__name__} has moved: write `from remit import {name}`"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return __getattr__(name)


for _name in _FORMER:
    sys.modules.setdefault(_name, _FormerModule(_name))
