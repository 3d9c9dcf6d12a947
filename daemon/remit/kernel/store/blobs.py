"""A few large things by name, such as the last good definitions."""

from remit.kernel.store.checks import check_size, check_state_key
from remit.kernel.store.database import Rows

_PUT = """
INSERT INTO blob (name, data) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET data = excluded.data
"""


class BlobRows(Rows):
    """A few large things by name, such as the last good configuration."""

    async def blob_put(self, name: str, data: bytes) -> None:
        """Keep `data` under `name`, in the place of what was there.

        Raises:
            TooLargeError: more than 16 MiB.
        """
        check_state_key(name)
        check_size(data, "$.data")
        await self.database.write(lambda connection: connection.execute(_PUT, (name, data)).close())

    async def blob_get(self, name: str) -> bytes | None:
        """What was put under `name`, or None."""
        check_state_key(name)
        query = "SELECT data FROM blob WHERE name = ?"
        row = await self.database.read(
            lambda connection: connection.execute(query, (name,)).fetchone()
        )
        return None if row is None else bytes(row[0])
