"""A request on its way through the dispatcher, and the face's side of the bargain."""

from collections.abc import Callable, Hashable
from typing import Literal, Protocol

import msgspec

from remit.model.bearer import Bearer
from remit.model.principal import Principal
from remit_client.wire import Answer, Progress, Request

Format = Literal["msgpack", "json", "object"]


class Call(msgspec.Struct):
    """One request from one authenticated caller.

    `format` says how `request.data` is encoded; "object" means it is a plain Python value already.
    """

    principal: Principal
    request: Request
    format: Format = "object"
    progress: Callable[[Progress], None] | None = None
    connection: Hashable | None = None
    """Where the request came in, so that pushed events find the way back."""
    depth: int = 0
    """How many handlers have called on before this one."""


class Job(Protocol):
    """A call whose handler waits: the face runs it as a task of its own."""

    async def run(self) -> Answer:
        """Run to the end, the time-out or the cancellation; never raises an ordinary exception."""


class Door(Protocol):
    """What a face needs of the dispatcher."""

    def submit(self, call: Call) -> Answer | Job:
        """Answer at once, or hand back the job that will. Never raises."""


class Directory(Protocol):
    """Who holds which key, at this moment."""

    def name_of_key(self, public_key: str) -> str | None:
        """The holder of a Z85 public key, or None when no living key is registered."""

    def principal(self, name: str) -> Principal | None:
        """The living principal of that name, or None when it was revoked."""


class Guard(Protocol):
    """Who may come in with which bearer token, at this moment."""

    def bearer(self, token: str, audience: str) -> Bearer | None:
        """Who shows a token; None when it does not count here and now."""

    def still(self, bearer: Bearer) -> bool:
        """Tell whether what somebody has shown before still counts."""

    def seconds_left(self, bearer: Bearer) -> float:
        """How long that will count at the most."""
