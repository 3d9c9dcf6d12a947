"""What a new agent shows at the door. Secrets are answered once and kept nowhere."""

import hashlib
import hmac
import secrets
from collections.abc import Callable

import msgspec

from remit.kernel.store.records import TokenRecord
from remit.model.principal import ANYWHERE, Token


def new_credentials() -> dict[str, str]:
    """A key pair for the socket and a bearer token."""
    import zmq  # noqa: PLC0415 - commands that only ask questions come past this module

    public, secret = zmq.curve_keypair()
    return {
        "public_key": public.decode(),
        "secret_key": secret.decode(),
        "token": secrets.token_urlsafe(32),
    }


def new_token() -> str:
    """A bearer token that was asked for; programs that look for leaked secrets know it."""
    return f"remit_{secrets.token_urlsafe(32)}"


def token_hash(token: str) -> str:
    """What is kept of a token; none for no token."""
    return hashlib.sha256(token.encode()).hexdigest() if token else ""


LONGEST_TOKEN = 256
MAX_OF_ONE = 100
MAX_IN_ALL = 20_000


class TokenRing:
    """The tokens that count."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._by_hash: dict[str, Token] = {}
        self._by_owner: dict[str, set[str]] = {}
        self.clock = clock
        self.on_drop: Callable[[Token], None] = lambda _token: None
        """Called with each token that counts no longer; a face cuts what hangs on it."""

    def __len__(self) -> int:
        return len(self._by_hash)

    def take(self, token: Token) -> None:
        """Let a token count."""
        self._by_hash[token.hash] = token
        self._by_owner.setdefault(token.owner, set()).add(token.hash)

    def drop(self, token: Token) -> None:
        """Let a token count no longer."""
        if self._by_hash.pop(token.hash, None) is None:
            return
        left = self._by_owner[token.owner]
        left.discard(token.hash)
        if not left:
            del self._by_owner[token.owner]
        self.on_drop(token)

    def drop_owner(self, owner: str) -> None:
        """Let no token of somebody count any longer."""
        for token in self.of(owner):
            self.drop(token)

    def of(self, owner: str) -> list[Token]:
        """The tokens of one principal, older before newer."""
        found = (self._by_hash[one] for one in self._by_owner.get(owner, ()))
        return sorted(found, key=_age)

    def made(self) -> list[Token]:
        """The tokens that were made by hand, older before newer."""
        found = (one for one in self._by_hash.values() if one.expires_at is not None)
        return sorted(found, key=_age)

    def find(self, text: str, audience: str) -> Token | None:
        """The token that somebody shows, if it counts here and now."""
        if len(text) > LONGEST_TOKEN:
            return None
        shown = hash_of(text)
        # Found by its hash: how long that takes says nothing about a token.
        token = self._by_hash.get(shown)
        if token is None or not hmac.compare_digest(token.hash, shown):
            return None
        return token if token.audience in {ANYWHERE, audience} and self.counts(token) else None

    def counts(self, token: Token) -> bool:
        """Tell whether a token that was found before still counts."""
        if self._by_hash.get(token.hash) is not token:
            return False
        return token.expires_at is None or self.clock() < token.expires_at

    def expired(self) -> list[Token]:
        """Those whose time is over."""
        now = self.clock()
        return [one for one in self.made() if (one.expires_at or 0.0) <= now]


def hash_of(text: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def token_of(record: TokenRecord) -> Token:
    """What the store keeps, as the runtime knows it."""
    return msgspec.convert(record, Token, from_attributes=True)


def record_of(token: Token) -> TokenRecord:
    """What the runtime knows, as the store keeps it."""
    return msgspec.convert(token, TokenRecord, from_attributes=True)


def _age(token: Token) -> tuple[float, str]:
    return token.created_at, token.hash


class ForwardClock:
    """The wall clock; but when that is set back, time goes on from where it was.

    So nothing that counts until some moment counts longer than it was given. When the wall clock is
    set forward this one follows, and what lapses does so early.
    """

    def __init__(self, wall_clock: Callable[[], float], clock: Callable[[], float]) -> None:
        """Start with the present.

        Args:
            wall_clock: seconds since 1970; somebody may set it.
            clock: seconds since whenever; it never jumps.
        """
        self._wall_clock = wall_clock
        self._clock = clock
        self._read_at = clock()
        self._now = wall_clock()

    def __call__(self) -> float:
        """Seconds since 1970, never fewer than time has really passed since the last look."""
        read_at = self._clock()
        self._now = max(self._wall_clock(), self._now + read_at - self._read_at)
        self._read_at = read_at
        return self._now
