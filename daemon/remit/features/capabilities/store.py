"""Capabilities that were made at run time, in SQLite."""

from remit.kernel.store.database import Database
from remit.kernel.store.row_checks import check_made

_PUT = """
INSERT INTO made_capability (id, body) VALUES (?, ?)
ON CONFLICT (id) DO UPDATE SET body = excluded.body
"""


class SqliteMade(Database):
    """See `MadeStore` for what each method promises."""

    async def made_put(self, capability: str, body: bytes) -> None:
        """Keep a capability, in the place of the one of that id."""
        check_made(capability, body)
        await self.write(lambda connection: connection.execute(_PUT, (capability, body)).rowcount)

    async def made_remove(self, capability: str) -> bool:
        """Forget a capability; tells whether it was there."""
        check_made(capability)
        query = "DELETE FROM made_capability WHERE id = ?"
        return bool(
            await self.write(
                lambda connection: connection.execute(query, (capability,)).rowcount,
                is_essential=True,
            )
        )

    async def made_list(self) -> dict[str, bytes]:
        """All of them, by id."""
        query = "SELECT id, body FROM made_capability ORDER BY id"
        return await self.read(lambda connection: dict(connection.execute(query)))
