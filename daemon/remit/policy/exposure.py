"""What is worth saying about a profile that does not list all its tools."""

from remit.model.composition import ToolEntry
from remit.model.event import SEARCH
from remit.model.grant import Grant
from remit.model.names import did_you_mean
from remit.model.place import Place, Problem
from remit.policy.catalogue import Catalogue
from remit.policy.layers import Layer


def exposure_warnings(catalogue: Catalogue, layer: Layer, grant: Grant) -> list[Problem]:
    """Tools that nobody could find, and pins that list nothing."""
    tools = catalogue.universe.bits_of(grant.exposed)
    for share in grant.shares:
        tools |= share.exposed  # theirs as soon as its author holds it
    pins = (_pin_warning(catalogue, entry, tools, grant.profile) for entry in layer.pinned)
    return [*_search_warnings(layer, grant), *(warning for warning in pins if warning)]


def _search_warnings(layer: Layer, grant: Grant) -> list[Problem]:
    said = layer.exposure
    if said is None or said.mode == "all" or SEARCH in grant.events:
        return []
    message = (
        f"{said.mode!r} has no effect: {grant.profile!r} may not search, so all tools are listed"
    )
    hint = f"allow {SEARCH}, or write 'exposure: all'"
    return [_warning(said.place, "nothing_to_find", message, hint)]


def _pin_warning(
    catalogue: Catalogue, entry: ToolEntry, tools: int, profile: str
) -> Problem | None:
    universe = catalogue.universe
    if entry.pattern is None:
        message = f"{entry.text!r} is no event, and only events can be pinned"
        return _warning(entry.place, "dead_pin", message, "an event has a colon, as in 'state:get'")
    covered = universe.denied_by(entry.pattern)
    if not covered:
        hint = did_you_mean(entry.text, universe.names)
        return _warning(entry.place, "dead_pattern", f"no event matches {entry.text!r}", hint)
    if covered & tools:
        return None
    message = f"{entry.text!r} is none of the tools of the profile {profile!r}"
    hint = "give it a capability that shows it in tool lists, or take the pin away"
    return _warning(entry.place, "dead_pin", message, hint)


def _warning(place: Place, code: str, message: str, hint: str) -> Problem:
    return Problem(place, code, message, hint, severity="warning")
