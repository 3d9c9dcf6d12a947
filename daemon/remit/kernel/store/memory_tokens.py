"""Bearer tokens in memory."""

from collections.abc import Sequence

from remit.kernel.store.checks import check_text
from remit.kernel.store.memory_tables import MemoryTables
from remit.kernel.store.records import TokenRecord
from remit.kernel.store.row_checks import check_token, token_taken


class MemoryTokens(MemoryTables):
    """See `TokenStore` for what each method promises."""

    async def token_add(self, record: TokenRecord) -> None:
        """Keep a token."""
        check_token(record)
        if record.hash in self._tokens:
            raise token_taken()
        self._tokens[record.hash] = record

    async def token_remove(self, hashes: Sequence[str]) -> int:
        """Forget these; tells how many there were."""
        for one in hashes:
            check_text(one, "$.hash")
        return sum(self._tokens.pop(one, None) is not None for one in hashes)

    async def token_list(self) -> tuple[TokenRecord, ...]:
        """All tokens, older before newer."""
        return tuple(sorted(self._tokens.values(), key=lambda one: (one.created_at, one.hash)))
