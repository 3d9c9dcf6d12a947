"""Pairs of profile and capability, as reviews are about them, and the kinds of reviews.

Light to import: the command line reads the handlers' names without a daemon's machinery.
"""

from collections.abc import Iterable

import msgspec

from remit.errors import NotFoundError
from remit.model.grant import Grant
from remit.model.suggest import did_you_mean
from remit.policy.catalogue import Catalogue
from remit.policy.compiler import layer_of
from remit.policy.resolve import make_grant

APPROVAL = "approval"
"""A call that waits."""
CAPABILITY = "capability"
"""A capability in a profile."""
CARD = "card"
"""A card that looks suspicious."""


class Pair(msgspec.Struct, frozen=True, order=True):
    """A capability in a profile."""

    profile: str
    capability: str

    @classmethod
    def parse(cls, text: str) -> "Pair | None":
        """Read `profile/capability`; None when it is no such thing."""
        profile, slash, capability = text.partition("/")
        return cls(profile, capability) if slash else None

    def __str__(self) -> str:
        return f"{self.profile}/{self.capability}"


def card_in(text: str) -> str | None:
    """Read `card:id`; None when it is no such thing."""
    kind, colon, card = text.partition(":")
    return card if colon and kind == CARD else None


class Gain(msgspec.Struct, frozen=True):
    """What an approval would grant."""

    events: frozenset[str]
    claude_tools: frozenset[str]


def no_such_pair(pair: Pair, known: Iterable[Pair]) -> NotFoundError:
    """The answer about a pair that does not wait and is not approved."""
    return NotFoundError(
        f"no review of {pair.capability!r} in the profile {pair.profile!r} is needed",
        hint=did_you_mean(str(pair), [str(one) for one in known]),
        details={"id": str(pair)},
    )


def gain(catalogue: Catalogue, pair: Pair) -> Gain:
    """What a pair gives its profile: the difference between a yes and a no."""
    approval = catalogue.approval(pair.profile, pair.capability)
    given, held = (
        _grant(msgspec.structs.replace(catalogue, approvals=approvals), pair.profile)
        for approvals in (catalogue.approvals | {approval}, catalogue.approvals - {approval})
    )
    return Gain(given.events - held.events, given.claude_tools - held.claude_tools)


def _grant(catalogue: Catalogue, profile: str) -> Grant:
    layer, environment = layer_of(catalogue, profile, {})
    return make_grant(catalogue, catalogue.compositions[profile], layer, environment)
