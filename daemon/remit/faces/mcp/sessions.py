"""The sessions that hosts open until 2025-11-25: so many of one agent, and none of one shut out."""

from typing import TYPE_CHECKING, Any

from anyio.abc import TaskGroup
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from remit.faces.mcp.admission import OWNER

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


class Sessions:
    """The library's sessions, which it keeps by their ids alone."""

    def __init__(self, manager: "StreamableHTTPSessionManager", *, most_of_one: int) -> None:
        self._manager = manager
        self._most_of_one = most_of_one

    def __len__(self) -> int:
        return len(self._manager._server_instances)  # noqa: SLF001 - there is no public way

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request."""
        await self._manager.handle_request(scope, receive, send)

    def has_room(self, scope: Any, owner: str) -> bool:
        """Tell whether a request may be served; one that opens a session may be one too many."""
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        version = headers.get(b"mcp-protocol-version")
        is_handshake = version is None or version in HANDSHAKE_PROTOCOL_VERSIONS
        if b"mcp-session-id" in headers or not is_handshake:
            return True
        owners = self._manager._session_owners.values()  # noqa: SLF001 - as above
        return sum(one["client_id"] == owner for one in owners) < self._most_of_one

    def end(self, name: str, tasks: TaskGroup) -> None:
        """End the sessions of a caller that was shut out."""
        owned = self._manager._session_owners.items()  # noqa: SLF001 - as above
        start = OWNER.format(name, "")
        for id_ in [id_ for id_, one in owned if one["client_id"].startswith(start)]:
            transport = self._manager._server_instances[id_]  # noqa: SLF001 - as above
            tasks.start_soon(self._manager._discard_session, id_, transport)  # noqa: SLF001
