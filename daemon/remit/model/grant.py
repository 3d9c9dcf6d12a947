"""A grant: the compiled, immutable set of what a holder may do, and what a session leaves of it.

A session is a piece of work in which its owner, and all below it, hold less than elsewhere.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from remit.errors import Problem
from remit.model.launch import PlacedLaunch
from remit.model.limits import NO_LIMITS, Effect, Exposure, Limits
from remit.model.names import EventPattern


class Share(msgspec.Struct, frozen=True):
    """What a capability that was made at run time could give; its author must hold it now."""

    capability: str
    author: str
    author_key: str
    bits: int
    exposed: int
    waiting: int
    """Those whose every call waits for an operator's yes."""
    claude_tools: frozenset[str]
    pinned: int = 0
    """Those of the exposed ones that the profile pins."""


class Grant(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a profile resolves to in one revision.

    INVARIANT: `bits` and `events` name the same events; bits serve algebra, the set the hot check.
    """

    profile: str
    revision: int
    bits: int
    events: frozenset[str]
    denied: tuple[EventPattern, ...] = ()
    """Deny patterns in force, so that an explicit refusal can be told from a missing grant."""
    pending_patterns: tuple[EventPattern, ...] = ()
    """What would be allowed if the pending reviews were approved."""
    capped: tuple[EventPattern, ...] = ()
    """What gives events of which the profile's `max_effect` took some, or would."""
    max_effect: Effect | None = None
    """How much its events do at the most; None: whatever they do."""
    denied_events: tuple[str, ...] = ()
    """The events of this revision that a deny covers, or that `max_effect` took; sorted."""
    approval_required: frozenset[str] = frozenset()
    """Events whose every call waits for an operator's yes; always a part of `events`."""
    exposed: frozenset[str] = frozenset()
    """Events that a tool list shows; always a part of `events`."""
    exposure: Exposure = "all"
    """How many of the exposed tools are listed before anybody looked for one."""
    pinned: frozenset[str] = frozenset()
    """Events that are listed whatever the exposure; always a part of `exposed`."""
    trusted: bool = False
    """What use teaches its holder counts for everybody at once; below an agent that is not trusted
    nobody is."""
    claude_tools: frozenset[str] = frozenset()
    denied_tools: frozenset[str] = frozenset()
    limits: Limits = NO_LIMITS
    capabilities: tuple[str, ...] = ()
    pending_review: tuple[str, ...] = ()
    prompt: str = ""
    launcher: PlacedLaunch | None = None
    """The process that the profile starts for an agent; only the profile's own agents get it."""
    config: Mapping[str, Any] = {}
    variables: Mapping[str, Any] = {}
    warnings: tuple[Problem, ...] = ()
    shares: tuple[Share, ...] = ()
    """What is still to be added, as far as the authors hold it: `events` is without it."""


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
