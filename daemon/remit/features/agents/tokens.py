"""Making and revoking bearer tokens, so that a restart finds them as they were.

A token counts once it is written. A revoked one counts no longer before anything is written, and
when the store fails, revoking it again writes it.
"""

import anyio
import structlog

from remit.errors import LimitError, UnknownAgentError
from remit.kernel.authority.credentials import MAX_IN_ALL, MAX_OF_ONE, record_of, token_of
from remit.kernel.authority.keyring import KeyRing
from remit.kernel.store.protocol import TokenStore
from remit.model.event import Service
from remit.model.principal import Principal, Token

log = structlog.get_logger()


class TokenIssuer(Service):
    """Changes the tokens that were made by hand."""

    def __init__(self, store: TokenStore, keyring: KeyRing) -> None:
        self._store = store
        self._keyring = keyring
        self._ring = keyring.tokens
        self._unwritten: dict[str, Token] = {}

    async def load(self) -> None:
        """Take over the tokens of the store whose owners live; forget the others."""
        lost = []
        for record in await self._store.token_list():
            token = token_of(record)
            if self._keyring.key_of(token.owner) == token.owner_key:
                self._ring.take(token)
            else:
                lost.append(token.hash)
        if lost:
            log.warning("orphaned_tokens_dropped", count=len(lost))
            await self._store.token_remove(lost)
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
            await self._store.token_add(record_of(token))
            if not self._keyring.lives(owner):
                await self._store.token_remove([token.hash])
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
            await self._store.token_remove([token.hash])
            self._unwritten.pop(token.id, None)

    async def forget_expired(self) -> None:
        """Drop those whose time is over."""
        expired = self._ring.expired()
        if expired:
            for token in expired:
                self._ring.drop(token)
            await self._store.token_remove([one.hash for one in expired])
