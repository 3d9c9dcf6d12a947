"""Capabilities that were made at run time, in SQLite."""

from remit.errors import InvalidDataError
from remit.kernel.store.rows import Rows, check_size, check_text

_PUT = """
INSERT INTO made_capability (id, body) VALUES (?, ?)
ON CONFLICT (id) DO UPDATE SET body = excluded.body
"""


class MadeRows(Rows):
    """Capabilities that were made at run time; the body is the runtime's own."""

    async def made_put(self, capability: str, body: bytes) -> None:
        """Keep a capability, in the place of the one of that id.

        Raises:
            InvalidDataError: the id cannot be one.
            TooLargeError: the body is beyond what any store takes.
        """
        _check_made(capability, body)
        await self.database.write(
            lambda connection: connection.execute(_PUT, (capability, body)).rowcount
        )

    async def made_remove(self, capability: str) -> bool:
        """Forget a capability; tells whether it was there."""
        _check_made(capability)
        query = "DELETE FROM made_capability WHERE id = ?"
        return bool(
            await self.database.write(
                lambda connection: connection.execute(query, (capability,)).rowcount,
                is_essential=True,
            )
        )

    async def made_list(self) -> dict[str, bytes]:
        """All of them, by id."""
        query = "SELECT id, body FROM made_capability ORDER BY id"
        return await self.database.read(lambda connection: dict(connection.execute(query)))


def _check_made(capability: str, body: bytes = b"") -> None:
    """Refuse what is no id of a capability, and a body beyond what any store takes."""
    check_text(capability, "$.id")
    if not capability or "\0" in capability:
        raise InvalidDataError("a capability needs an id", details={"path": "$.id"})
    check_size(body, "$.body")
