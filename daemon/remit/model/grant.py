"""How many of its tools the host of an agent is shown before anybody looked for one."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from remit.model.agent import PlacedLaunch
from remit.model.event import Effect
from remit.model.limits import NO_LIMITS, Limits
from remit.model.names import EventPattern
from remit.model.place import Place, Problem

Exposure = Literal["all", "discovered", "turn"]
EXPOSURES: tuple[Exposure, ...] = ("discovered", "turn", "all")
"""From few tools to many. `discovered`: the pinned ones, and what it takes to search. `turn`: those
as well, and the few that fit the last search. `all`: every tool."""


SEARCH = "discovery:discover"
"""The event by which the others are found; without it everything is listed, whatever is said."""


class PlacedExposure(msgspec.Struct, frozen=True):
    """What a profile says about it, and where."""

    mode: Exposure
    place: Place


# A grant: the compiled, immutable set of what a holder may do.


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
