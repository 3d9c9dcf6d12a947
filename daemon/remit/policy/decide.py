"""May a holder use an event, and what is left of a grant that is narrowed.

The hot path is one look-up in a frozenset. Narrowing takes away and never adds: to what does less,
to what another grant allows, and to what a session leaves.
"""

from collections.abc import Iterable

import msgspec

from remit.errors import REQUEST, InvalidDataError, InvalidPatternError
from remit.model.event import GRANTED, Reason
from remit.model.grant import Grant, Narrowing, Session
from remit.model.limits import Effect
from remit.model.names import EventPattern, ToolEntry, did_you_mean
from remit.policy.catalogue import Catalogue

_ALL = EventPattern("", exact=False)


def decide(grant: Grant, event: str) -> Reason:
    """The reason why a holder may or may not use an event, by its canonical name."""
    return GRANTED if event in grant.events else refusal(grant, event)


def refusal(grant: Grant, event: str) -> Reason:
    """Why an event is refused.

    Computed from patterns and not from the events that exist, so that the answer is the same for an
    event that exists and one that does not: a caller learns nothing by guessing names.
    """
    # Plain loops: refusals are as frequent as grants, and a generator would double their cost.
    for pattern in grant.denied:
        if pattern.covers(event):
            return "explicit_deny"
    for pattern in grant.pending_patterns:
        if pattern.covers(event):
            return "review_pending"
    for pattern in grant.capped:
        if pattern.covers(event):
            return "explicit_deny"
    return "no_grant"


def narrow_effect(catalogue: Catalogue, grant: Grant, ceiling: Effect) -> Grant:
    """Keep only the events that do no more than `ceiling`.

    Nobody states the effect of a model tool, and what is not stated never qualifies: none is kept.
    """
    universe = catalogue.universe
    kept = frozenset(universe.names_in(grant.bits & universe.at_most[ceiling]))
    narrowed = _with_events(catalogue, grant, kept)
    return msgspec.structs.replace(narrowed, claude_tools=frozenset())


def confine(catalogue: Catalogue, grant: Grant, ceiling: Grant) -> Grant:
    """Keep a grant under another one: the parent ceiling of a child."""
    confined = _with_events(catalogue, grant, grant.events & ceiling.events)
    return msgspec.structs.replace(
        confined,
        trusted=grant.trusted and ceiling.trusted,
        claude_tools=grant.claude_tools & ceiling.claude_tools,
        limits=grant.limits.smallest(ceiling.limits),
        # What the parent may do only with an approval, nobody it spawns does without one.
        approval_required=confined.approval_required
        | (ceiling.approval_required & confined.events),
    )


def _with_events(catalogue: Catalogue, grant: Grant, events: frozenset[str]) -> Grant:
    return msgspec.structs.replace(
        grant,
        events=events,
        bits=catalogue.universe.bits_of(events),
        exposed=grant.exposed & events,
        pinned=grant.pinned & events,
        approval_required=grant.approval_required & events,
    )


def narrow(catalogue: Catalogue, grant: Grant, session: Session) -> Grant:
    """What a session leaves of a grant: of a closed one, nothing.

    Raises:
        InvalidPatternError: an entry of a step is no tool.
    """
    if not session.is_open:
        return shut(grant)
    for step in session.steps:
        grant = _narrow(catalogue, grant, step)
    return grant


def shut(grant: Grant) -> Grant:
    """Nothing of a grant, denied outright."""
    return msgspec.structs.replace(
        grant,
        bits=0,
        events=frozenset(),
        exposed=frozenset(),
        pinned=frozenset(),
        approval_required=frozenset(),
        claude_tools=frozenset(),
        denied=(_ALL,),
        pending_patterns=(),
    )


def _narrow(catalogue: Catalogue, grant: Grant, step: Narrowing) -> Grant:
    universe = catalogue.universe
    bits, tools = grant.bits, grant.claude_tools
    if step.allowed_tools is not None:
        allowed = entries_of(step.allowed_tools)
        bits &= _granted(catalogue, allowed)
        tools &= {entry.model_tool for entry in allowed if entry.model_tool}
    denied = entries_of(step.disallowed_tools)
    patterns = [entry.pattern for entry in denied if entry.pattern]
    for pattern in patterns:
        bits &= ~universe.denied_by(pattern)
    tools -= {entry.model_tool for entry in denied if entry.model_tool}
    if any(pattern.is_everything for pattern in patterns):
        tools = frozenset()
    events = frozenset(universe.names_in(bits))
    narrowed = msgspec.structs.replace(
        grant,
        bits=bits,
        events=events,
        exposed=grant.exposed & events,
        pinned=grant.pinned & events,
        approval_required=grant.approval_required & events,
        claude_tools=tools,
        denied=(*grant.denied, *(one for p in patterns for one in universe.denials(p))),
        limits=grant.limits.smallest(step.limits),
    )
    return narrow_effect(catalogue, narrowed, step.max_effect) if step.max_effect else narrowed


def _granted(catalogue: Catalogue, entries: Iterable[ToolEntry]) -> int:
    """As in a profile: no wildcard lets an event through that must be named."""
    bits = 0
    for entry in entries:
        if entry.pattern:
            bits |= catalogue.universe.granted_by(entry.pattern)
    return bits


def entries_of(texts: Iterable[str]) -> list[ToolEntry]:
    """The entries of a tool list that came in a request.

    Raises:
        InvalidPatternError: one of them is no tool.
    """
    return [ToolEntry.parse(text, REQUEST) for text in texts]


def check_step(catalogue: Catalogue, grant: Grant, step: Narrowing) -> None:
    """Refuse entries that mean nothing to the one who writes them.

    A typo in a list that narrows would otherwise leave more than was meant. Only what `grant` holds
    is looked at and suggested: whether anything else exists cannot be told from the answer.

    Raises:
        InvalidDataError: an entry is no tool, or matches nothing that the grant holds.
    """
    for field, texts in (
        ("allowed_tools", step.allowed_tools or ()),
        ("disallowed_tools", step.disallowed_tools),
    ):
        for at, text in enumerate(texts):
            problem, hint = _mistake(catalogue, grant, text, denies=field == "disallowed_tools")
            if problem:
                raise InvalidDataError(problem, hint=hint, details={"path": f"$.{field}[{at}]"})


def _mistake(catalogue: Catalogue, grant: Grant, text: str, *, denies: bool) -> tuple[str, str]:
    if text == "*" and not denies:
        return "'*' leaves everything as it is", "leave allowed_tools out"
    try:
        entry = ToolEntry.parse(text, REQUEST)
    except InvalidPatternError as error:
        return error.message, error.hint
    if speaks_of(catalogue, grant, entry, denies=denies):
        return "", ""
    known = grant.events if entry.pattern else grant.claude_tools
    return f"nothing that you hold matches {text!r}", did_you_mean(text, known)


def speaks_of(catalogue: Catalogue, grant: Grant, entry: ToolEntry, *, denies: bool) -> bool:
    """Tell whether an entry of a tool list matches anything that a grant holds."""
    if entry.pattern is None:
        return entry.model_tool in grant.claude_tools
    universe = catalogue.universe
    bits = universe.denied_by(entry.pattern) if denies else universe.granted_by(entry.pattern)
    return bool(bits & grant.bits) or (denies and entry.pattern.is_everything)
