"""Who may come in under /mcp: the holder of a token, from a page that may read the answers.

A browser can be made to send requests to this machine. It cannot know a token; where callers
without one are admitted, the name of the host and of the page must be this machine's.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from remit.errors import SettingsError
from remit.faces.http.gateway import bearer_of
from remit.model.paths import HostRules
from remit.model.principal import RESERVED, Bearer, Principal, Token

if TYPE_CHECKING:
    from remit.kernel.authority.keyring import KeyRing

OWNER = "{}#{}"
"""Whose a session is: a name and a serial, as who takes the name later is somebody else."""
_OURS = re.compile(r"(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[0-9]{1,5})?")
_PORT = re.compile(r":[0-9]{1,5}\Z")
_SESSION = b"remit-session"
_SESSION_BYTES = 128


class Refusal(msgspec.Struct, frozen=True):
    """An answer instead of service."""

    status: int
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = ()

    async def respond(self, send: Any) -> None:
        """Send it, as a JSON-RPC error without an id."""
        error = {"code": -32_600, "message": self.message}
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error})
        headers = [(b"content-type", b"application/json"), *self.headers]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


_NO_TOKEN = Refusal(
    401,
    "no token that counts here was shown; `remit key token` makes one",
    ((b"www-authenticate", b'Bearer realm="remit"'),),
)
_OTHER_HOST = Refusal(421, "this server is not asked under that name")
_ODD_SESSION = Refusal(400, "that is no name of a session; send one Remit-Session")
_OTHER_PAGE = Refusal(403, "pages of that origin may not ask; see the setting http_origins")


class Admission:
    """Decides who a request comes from; whether it may do anything is asked elsewhere."""

    def __init__(
        self,
        keyring: "KeyRing",
        *,
        is_local: bool,
        origins: Iterable[str] = (),
        hosts: Iterable[str] = (),
        anonymous: str = "",
    ) -> None:
        """Wire the parts.

        Args:
            keyring: says whose token it is, at every request.
            is_local: whether only this machine can reach us.
            origins: pages that may ask besides those of this machine.
            hosts: names by which it may be asked besides those of this machine.
            anonymous: the agent that a caller without a token is; empty: nobody.

        Raises:
            SettingsError: callers without a token could come from elsewhere, or could do too much.
        """
        if anonymous and (not is_local or anonymous in RESERVED):
            message = f"mcp_anonymous = {anonymous!r} would let anybody in"
            hint = "serve http on 127.0.0.1, and name an agent of little power"
            raise SettingsError(message, hint=hint)
        self._keyring = keyring
        self._is_local = is_local
        self._origins = frozenset(origins)
        self._hosts = HostRules(allow_hosts=tuple(hosts))
        self._anonymous = anonymous

    def admit(self, scope: Any) -> Bearer | Refusal:
        """Who asks, or what to answer instead."""
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value)
        if (refusal := self._foreign(headers)) is not None:
            return refusal
        found = self._identified(headers.get(b"authorization", []))
        if found is None:
            return _NO_TOKEN
        sessions = headers.get(_SESSION, [])
        return _ODD_SESSION if len(sessions) > 1 or _is_long(sessions) else found

    def _identified(self, shown: list[bytes]) -> Bearer | None:
        if not shown and self._anonymous:
            principal = self._keyring.principal(self._anonymous)
            return None if principal is None else Bearer(principal, Token("", self._anonymous, ""))
        return bearer_of(self._keyring, [one.decode("latin-1") for one in shown])

    def _foreign(self, headers: dict[bytes, list[bytes]]) -> Refusal | None:
        if self._is_local:
            hosts = headers.get(b"host", [])
            if len(hosts) != 1 or not self._is_named(hosts[0].decode("latin-1")):
                return _OTHER_HOST
        for origin in headers.get(b"origin", []):
            page = origin.decode("latin-1")
            if page in self._origins:
                continue
            scheme, _, rest = page.partition("://")
            if not (self._is_local and scheme in ("http", "https") and _is_ours(rest)):
                return _OTHER_PAGE
        return None

    def _is_named(self, host: str) -> bool:
        return _is_ours(host) or self._hosts.allow(_PORT.sub("", host))

    def seconds_left(self, bearer: Bearer) -> float:
        """How long somebody may stay at the most."""
        return self._keyring.seconds_left(bearer)

    @staticmethod
    def user(bearer: Bearer) -> Any:
        """The same person as the library knows it: a session is used only by whoever opened it."""
        return _known_as(bearer.principal)


@lru_cache(maxsize=4096)
def _known_as(one: Principal) -> Any:
    from mcp.server.auth.middleware.bearer_auth import (  # noqa: PLC0415 - see `endpoint`
        AuthenticatedUser,
    )
    from mcp.server.auth.provider import AccessToken  # noqa: PLC0415 - the same

    return AuthenticatedUser(
        AccessToken(token="", client_id=OWNER.format(one.id, one.serial), scopes=[])
    )


def session_of(scope: Any) -> str | None:
    """The session that a request is to be narrowed by, if a header names one."""
    found = (value for name, value in scope["headers"] if name == _SESSION)
    name: bytes | None = next(found, None)
    return None if name is None else name.decode("latin-1")


def _is_long(names: list[bytes]) -> bool:
    return any(len(name) > _SESSION_BYTES for name in names)


def _is_ours(text: str) -> bool:
    """Tell whether a host, with or without its port, is this machine by a name of its own."""
    return _OURS.fullmatch(text.lower()) is not None
