"""MCP in the HTTP face: its endpoint, and what it is told."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING

from remit.config.settings_table import Settings
from remit.errors import SettingsError
from remit.model.bearer import Bearer, Token
from remit.model.principal import RESERVED
from remit.runtime.dispatcher import Dispatcher
from remit.runtime.keyring import KeyRing
from remit.runtime.services import Services

if TYPE_CHECKING:
    from remit.faces.mcp.endpoint import Endpoint

MCP_PATH = "/mcp"


def mcp_endpoint(settings: Settings, services: Services, dispatcher: Dispatcher) -> "Endpoint":
    """What is served under /mcp.

    Raises:
        SettingsError: callers without a token would come from elsewhere.
    """
    from remit.faces.http.server import address_of  # noqa: PLC0415 - only when HTTP is on
    from remit.faces.mcp.admission import Admission  # noqa: PLC0415 - the same
    from remit.faces.mcp.endpoint import Endpoint  # noqa: PLC0415 - the same

    is_local = _is_loopback(address_of(settings.http)[0])
    anonymous = settings.mcp_anonymous
    if anonymous and (not is_local or anonymous in RESERVED):
        message = f"mcp_anonymous = {anonymous!r} would let anybody in"
        hint = "serve http on 127.0.0.1, and name an agent of little power"
        raise SettingsError(message, hint=hint)
    admission = Admission(
        services.keyring,
        is_local=is_local,
        origins=settings.http_origins,
        hosts=settings.http_hosts,
        anonymous=_nobody(services.keyring, anonymous) if anonymous else None,
    )
    return Endpoint(
        dispatcher,
        admission,
        in_flight=settings.max_in_flight,
        body_bytes=settings.http_body_limit,
    )


def _nobody(keyring: KeyRing, name: str) -> Callable[[], Bearer | None]:
    def admit() -> Bearer | None:
        principal = keyring.principal(name)
        return None if principal is None else Bearer(principal, Token("", name, ""))

    return admit


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


@contextmanager
def mcp_joined(services: Services, endpoint: "Endpoint") -> Generator[None]:
    """Let hosts hear of changed lists, and cut those of whoever is shut out."""
    courier, keyring = services.courier, services.keyring
    before, shut_out, dropped = courier.on_change, keyring.on_revoke, keyring.tokens.on_drop

    def lost(name: str) -> None:
        endpoint.evict(name)
        shut_out(name)

    def drop(token: Token) -> None:
        endpoint.drop_token(token.hash)
        dropped(token)

    courier.on_change, keyring.on_revoke, keyring.tokens.on_drop = endpoint.changed, lost, drop
    try:
        yield
    finally:
        courier.on_change, keyring.on_revoke = before, shut_out
        keyring.tokens.on_drop = dropped
