"""Where a caller is reached, and whom it can reach itself."""

from remit.errors import ConflictError
from remit.kernel.bus.delivery import Connection
from remit.kernel.dispatch.context import Context
from remit.model.principal import OPERATOR_ID


def connection_of(context: Context) -> Connection:
    """The connection that pushed events go to.

    Raises:
        ConflictError: the request came by a way on which nothing can be pushed.
    """
    found: Connection | None = context.connection
    if found is None:
        raise ConflictError(
            "nothing can be pushed to where this request came from",
            hint="subscribe over the socket, for instance with remit_client",
        )
    return found


def may_address(context: Context, name: str) -> bool:
    """Tell whether somebody lives in the caller's tree; the operator is in every one.

    Whom one may send a message, one may share a conversation with, and nobody else.
    """
    fleet, caller = context.kernel.authority.fleet, context.principal
    if fleet.principal(name) is None:
        return False
    if caller.is_operator or name == OPERATOR_ID:
        return True
    return fleet.root(name) == fleet.root(caller.id)
