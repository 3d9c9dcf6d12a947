"""remit decides, explains and serves what each agent of a fleet may do."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remit.runtime.context import Context
    from remit.runtime.registry import event_handler

__version__ = "0.1.0"
__all__ = ["Context", "__version__", "event_handler"]


def __getattr__(name: str) -> Any:
    """What plug-ins import from here; loaded when asked for, so that nobody else pays."""
    if name == "event_handler":
        from remit.runtime.registry import event_handler  # noqa: PLC0415

        return event_handler
    if name == "Context":
        from remit.runtime.context import Context  # noqa: PLC0415

        return Context
    raise AttributeError(f"module 'remit' has no attribute {name!r}")
