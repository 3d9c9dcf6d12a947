"""Bearer tokens: their rows, by their hashes, and who makes and revokes them.

A token counts once it is written. A revoked one counts no longer before anything is written, and
when the store fails, revoking it again writes it.
"""

import sqlite3
from collections.abc import Sequence

import anyio
import msgspec
import structlog

from remit.errors import (
    ConflictError,
    InvalidDataError,
    LimitError,
    UnknownAgentError,
)
from remit.kernel.authority.keyring import KeyRing
from remit.kernel.store.records import TokenRecord
from remit.kernel.store.rows import Rows, check_text, check_time
from remit.model.event import Service
from remit.model.principal import Principal, Token

log = structlog.get_logger()
MAX_OF_ONE = 100
"""Tokens of one principal."""
MAX_IN_ALL = 20_000
_COLUMNS = "hash, owner, owner_key, audience, created_at, expires_at"


class TokenRows(Rows):
    """Bearer tokens by their hashes. Those of a client or agent go with it."""

    async def token_add(self, record: TokenRecord) -> None:
        """Keep a token.

        Raises:
            ConflictError: that hash is there already.
        """
        _check_token(record)
        await self.database.write(lambda connection: _add_token(connection, record))

    async def token_remove(self, hashes: Sequence[str]) -> int:
        """Forget these; tells how many there were."""
        for one in hashes:
            check_text(one, "$.hash")
        rows = [(one,) for one in hashes]
        query = "DELETE FROM token WHERE hash = ?"
        return await self.database.write(
            # -1 when there was nothing to run
            lambda connection: max(connection.executemany(query, rows).rowcount, 0),
            is_essential=True,
        )

    async def token_list(self) -> tuple[TokenRecord, ...]:
        """All tokens, older before newer."""
        query = f"SELECT {_COLUMNS} FROM token ORDER BY created_at, hash"  # noqa: S608 - constants
        return await self.database.read(
            lambda connection: tuple(TokenRecord(*row) for row in connection.execute(query))
        )


class TokenIssuer(Service):
    """Makes and revokes bearer tokens, so that a restart finds them as they were."""

    def __init__(self, rows: TokenRows, keyring: KeyRing) -> None:
        self._rows = rows
        self._keyring = keyring
        self._ring = keyring.tokens
        self._unwritten: dict[str, Token] = {}

    async def load(self) -> None:
        """Take over the tokens of the store whose owners live; forget the others."""
        lost = []
        for record in await self._rows.token_list():
            token = msgspec.convert(record, Token, from_attributes=True)
            if self._keyring.key_of(token.owner) == token.owner_key:
                self._ring.take(token)
            else:
                lost.append(token.hash)
        if lost:
            log.warning("orphaned_tokens_dropped", count=len(lost))
            await self._rows.token_remove(lost)
        await self.forget_expired()

    async def add(self, owner: Principal, hash_: str, *, audience: str, seconds: float) -> Token:
        """Let a token count for its owner, from when it is stored until its time is over.

        Raises:
            LimitError: there are too many.
            UnknownAgentError: the owner was ended meanwhile.
        """
        await self.forget_expired()
        if len(self._ring.of(owner.id)) >= MAX_OF_ONE or len(self._ring) >= MAX_IN_ALL:
            message = f"{owner.id!r} has as many tokens as it may have"
            raise LimitError(message, hint="revoke some: remit key tokens lists them")
        now = self._ring.clock()
        token = Token(
            hash=hash_,
            owner=owner.id,
            owner_key=self._keyring.key_of(owner.id) or "",
            audience=audience,
            created_at=now,
            expires_at=now + seconds,
        )
        # Shielded: one that is kept and does not count would appear after a restart.
        with anyio.CancelScope(shield=True):
            await self._rows.token_add(msgspec.convert(token, TokenRecord, from_attributes=True))
            if not self._keyring.lives(owner):
                await self._rows.token_remove([token.hash])
                raise UnknownAgentError(f"{owner.id!r} was ended meanwhile")
            self._ring.take(token)
        return token

    def find(self, name: str) -> Token | None:
        """The token of that id; also one whose end still has to be written."""
        living = next((one for one in self._ring.made() if one.id == name), None)
        return living or self._unwritten.get(name)

    async def revoke(self, token: Token) -> None:
        """Let a token count no longer, at once."""
        self._unwritten[token.id] = token
        with anyio.CancelScope(shield=True):
            self._ring.drop(token)
            await self._rows.token_remove([token.hash])
            self._unwritten.pop(token.id, None)

    async def forget_expired(self) -> None:
        """Drop those whose time is over."""
        expired = self._ring.expired()
        if expired:
            for token in expired:
                self._ring.drop(token)
            await self._rows.token_remove([one.hash for one in expired])


def _add_token(connection: sqlite3.Connection, record: TokenRecord) -> None:
    if connection.execute("SELECT 1 FROM token WHERE hash = ?", (record.hash,)).fetchone():
        raise _token_taken()
    row = (
        record.hash,
        record.owner,
        record.owner_key,
        record.audience,
        record.created_at,
        record.expires_at,
    )
    connection.execute(f"INSERT INTO token ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", row)  # noqa: S608


def _check_token(record: TokenRecord) -> None:
    """Refuse a token that could not be kept or found."""
    for field in ("hash", "owner", "owner_key", "audience"):
        check_text(getattr(record, field), f"$.{field}")
    if not record.hash or not record.owner:
        raise InvalidDataError("a token needs a hash and an owner", details={"path": "$.hash"})
    check_time(record.created_at, "$.created_at")
    check_time(record.expires_at, "$.expires_at")


def _token_taken() -> ConflictError:
    """Two tokens have one hash: they are the same."""
    return ConflictError("that token is there already")
