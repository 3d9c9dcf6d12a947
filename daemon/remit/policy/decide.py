"""May a holder use an event? The hot path is one look-up in a frozenset."""

from remit.model.decision import GRANTED, Reason
from remit.model.grant import Grant


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
