"""A session: a piece of work in which its owner, and all below it, hold less than elsewhere."""

import msgspec

from remit.model.event import Effect
from remit.model.limits import NO_LIMITS, Limits


class Narrowing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one step leaves of a grant; absent fields leave everything."""

    allowed_tools: tuple[str, ...] | None = None
    """Events, patterns and model tools; all others are out. Empty: nothing is left."""
    disallowed_tools: tuple[str, ...] = ()
    max_effect: Effect | None = None
    limits: Limits = NO_LIMITS


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One session, from its opening on; a name that is opened again is another session.

    INVARIANT: steps are only ever added, so what a session leaves of a grant never grows.
    """

    id: str
    name: str
    owner: str
    owner_key: str = ""
    """The key that the owner had: a later principal of the same name is not the owner."""
    opened_at: float = 0.0
    closed_at: float | None = None
    steps: tuple[Narrowing, ...] = ()

    @property
    def is_open(self) -> bool:
        """Tell whether anything can be done in this session."""
        return self.closed_at is None


class SessionKey(msgspec.Struct, frozen=True):
    """Which session a request works in, for whatever is kept in it: whose it is, and its name.

    INVARIANT: two principals share a key only when one of them was bound to a session of the
    other; the same name in the mouth of a stranger is another key.
    """

    owner: str
    owner_key: str = ""
    """The public key that the owner has: a later principal of the same name is not the owner."""
    name: str = ""
    """Empty: what the owner does without naming a session."""
