"""What a call can fail with.

    RemitError               code, message, hint, details, decision
    ├── Denied               denied               details.reason
    ├── UnknownEvent         unknown_event
    ├── UnknownAgent         unknown_agent        no such agent, or not for the caller
    ├── ExceedsParent        exceeds_parent       details.excess
    ├── InvalidData          invalid_data         details.path
    ├── NotFound             not_found
    ├── Conflict             conflict
    ├── TooLarge             too_large
    ├── LimitExceeded        limit_exceeded       details.retry_after
    ├── ApprovalPending      approval_pending     details.review; the same call again finds it
    ├── Timeout              timeout
    ├── Cancelled            cancelled
    ├── BadFrame             bad_frame
    ├── UnsupportedVersion   unsupported_version
    ├── StoreUnavailable     store_unavailable
    ├── Internal             internal
    ├── Unauthorised         unauthorised         the daemon refused the handshake
    ├── Unreachable          unreachable          nobody answers at the endpoint
    ├── ConnectionLost       connection_lost      the request may or may not have been carried out
    └── BadKey               bad_key              a key file that cannot be used

A code without a class of its own is a plain `RemitError`: compare `code`, it is stable.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from remit_client.wire import Answer, Failure


class RemitError(Exception):
    """A request that failed; `hint` says how to repair it."""

    default_code: ClassVar[str] = "internal"

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        hint: str = "",
        details: Mapping[str, Any] | None = None,
        decision: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code or self.default_code
        self.message = message
        self.hint = hint
        self.details: dict[str, Any] = dict(details or {})
        self.decision = decision

    def __str__(self) -> str:
        hint = f": {self.hint}" if self.hint else ""
        return f"{self.message}{hint} [{self.code}]"


class Denied(RemitError):  # noqa: N818  the names below are the contract's codes
    """The caller may not do this."""

    default_code = "denied"


class UnknownEvent(RemitError):  # noqa: N818
    """No such event."""

    default_code = "unknown_event"


class UnknownAgent(RemitError):  # noqa: N818
    """No such agent, or none that the caller may ask about."""

    default_code = "unknown_agent"


class ExceedsParent(RemitError):  # noqa: N818
    """Somebody would get more than the one who gives it has."""

    default_code = "exceeds_parent"


class InvalidData(RemitError):  # noqa: N818
    """The data do not fit the event."""

    default_code = "invalid_data"


class NotFound(RemitError):  # noqa: N818
    """The thing asked for is not there."""

    default_code = "not_found"


class Conflict(RemitError):  # noqa: N818
    """The request does not fit the present state."""

    default_code = "conflict"


class TooLarge(RemitError):  # noqa: N818
    """The request or its answer does not fit into a message."""

    default_code = "too_large"


class LimitExceeded(RemitError):  # noqa: N818
    """Too much at once."""

    default_code = "limit_exceeded"


class ApprovalPending(RemitError):  # noqa: N818
    """The call waits for somebody's yes; repeat it with the same data to find out."""

    default_code = "approval_pending"


class Timeout(RemitError):  # noqa: N818
    """No answer in time. The daemon was told to stop, but it may have carried the request out."""

    default_code = "timeout"


class Cancelled(RemitError):  # noqa: N818
    """The request was cancelled in the daemon."""

    default_code = "cancelled"


class BadFrame(RemitError):  # noqa: N818
    """The daemon did not understand a message."""

    default_code = "bad_frame"


class UnsupportedVersion(RemitError):  # noqa: N818
    """The daemon speaks another version of the protocol."""

    default_code = "unsupported_version"


class StoreUnavailable(RemitError):  # noqa: N818
    """The daemon cannot reach its store."""

    default_code = "store_unavailable"


class Internal(RemitError):  # noqa: N818
    """The daemon failed; its log knows more."""

    default_code = "internal"


class Unauthorised(RemitError):  # noqa: N818
    """The daemon refused the handshake."""

    default_code = "unauthorised"


class Unreachable(RemitError):  # noqa: N818
    """Nobody answers at the endpoint."""

    default_code = "unreachable"


class ConnectionLost(RemitError):  # noqa: N818
    """The connection broke before the answer came; nobody knows whether the request was done."""

    default_code = "connection_lost"


class BadKey(RemitError):  # noqa: N818
    """A key file that cannot be used."""

    default_code = "bad_key"


_BY_CODE = {kind.default_code: kind for kind in RemitError.__subclasses__()}


def error_of(answer: Answer) -> RemitError:
    """The exception for an answer that is not ok."""
    failure = answer.error or Failure("internal", "the daemon gave no reason")
    return _BY_CODE.get(failure.code, RemitError)(
        failure.message,
        code=failure.code,
        hint=failure.hint,
        details=failure.details,
        decision=answer.decision,
    )
