"""What a handler is given besides its data: who asks, under which grant, and the services."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from remit.errors import DeniedError, LimitError
from remit.kernel.dispatch.tool_list import Documented
from remit.model.grant import Grant
from remit.model.principal import Principal
from remit.policy.catalogue import Catalogue
from remit_client.wire import Progress, RequestId

if TYPE_CHECKING:
    from remit.kernel.dispatch.kernel import Kernel
    from remit.kernel.dispatch.tool_names import Kind

MAX_DEPTH = 16


class Onward(Protocol):
    """Where a handler sends its own calls: the same door that its caller came through."""

    async def ask(
        self,
        principal: Principal,
        event: str,
        data: Any = None,
        *,
        session: str | None = None,
        depth: int = 0,
    ) -> Any:
        """The answer's data; a failure is raised."""


def _at_once(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


class Context(msgspec.Struct, eq=False):
    """The context of one call. Everything in it belongs to one revision."""

    principal: Principal
    grant: Grant
    catalogue: Catalogue
    kernel: "Kernel"
    onward: Onward
    request_id: RequestId = 0
    session: str | None = None
    decision: str = ""
    progress: Callable[[Progress], None] | None = None
    depth: int = 0
    connection: Any = None
    """Where the request came in; None for callers that nothing can be pushed to."""
    through: Callable[..., Any] = _at_once
    """How `report` and `emit` reach the loop, to which the sockets belong."""
    handlers: Mapping[str, Documented] = {}
    """By event; those that the catalogue was compiled against."""
    withheld: dict[str, Any] = {}
    """What the audit is told of a failure and the caller is not."""
    warnings: list[dict[str, str]] | None = None
    """What the answer says beside its data; None: nothing."""

    def told_old_name(self, kind: "Kind", old: str, new: str) -> None:
        """Warn the caller that it used an old name of something that it may see."""
        warning = self.kernel.old_names.note(self.principal.id, kind, old, new)
        self.warnings = [*(self.warnings or ()), warning]

    @property
    def services(self) -> "Kernel":
        """The former name of `kernel`."""
        import warnings  # noqa: PLC0415 - only where a plug-in is behind

        warnings.warn("write ctx.kernel for ctx.services", DeprecationWarning, stacklevel=2)
        return self.kernel

    @property
    def sees_everything(self) -> bool:
        """Tell whether nothing in this revision is hidden from the caller."""
        return self.principal.is_operator or self.grant.bits == self.catalogue.universe.everything

    def report(self, done: float, total: float | None = None, message: str = "") -> None:
        """Tell a waiting caller how far the work has come; nobody may be listening."""
        if self.progress is not None:
            self.through(self.progress, Progress(self.request_id, done, total, message))

    def emit(self, event: str, data: Any) -> int:
        """Push an event to everybody who asked for it and may see it now; answers how many."""
        return int(self.through(self.kernel.delivery.publish, event, data, self.principal.id))

    async def call(self, event: str, data: Any = None) -> Any:
        """Call another event in the name of the same caller, and under its grant.

        Raises:
            RemitError: what the other event answered.
        """
        if self.depth == MAX_DEPTH:
            message = f"{MAX_DEPTH} handlers have called on, one after the other"
            raise LimitError(message, hint="do two of them call each other?")
        fleet = self.kernel.authority.fleet
        if fleet.principal(self.principal.id) is not None and not fleet.lives(self.principal):
            # Somebody else has the name by now, and must not lend its rights to this call.
            message = f"{self.principal.id!r}, who made this call, is gone"
            raise DeniedError(message, reason="revoked")
        return await self.onward.ask(
            self.principal, event, data, session=self.session, depth=self.depth + 1
        )
