"""What a caller may be shown: nothing that it could not use.

One rule for events, capabilities and profiles, so that no list or count tells more than a check.
Names in requests are looked up in this, and in nothing else: see `lookup.py`.
"""

from remit.model.grant import Grant
from remit.model.principal import OPERATOR_ID
from remit.policy.catalogue import Made
from remit.policy.narrowing import confine
from remit.runtime.context import Context


def sight(context: Context) -> Grant:
    """What the caller may name when it gives rights: what it holds outside of all sessions.

    Inside of one it is shown less, but what it may ask for outside of it is no secret in there.
    """
    if context.sees_everything:
        return context.grant
    fleet, catalogue = context.services.authority.fleet, context.catalogue
    grant = fleet.own_grant(context.principal.id, catalogue)
    for above in fleet.ancestors(context.principal.id):
        grant = confine(catalogue, grant, fleet.own_grant(above.id, catalogue))
    return grant


def visible_capabilities(context: Context, grant: Grant | None = None) -> list[str]:
    """The capabilities whose events and model tools the caller holds all, sorted.

    `grant` is what it holds; that of the request when absent.
    """
    catalogue = context.catalogue
    held = context.grant if grant is None else grant
    if context.sees_everything:
        return sorted(catalogue.capabilities)
    return [name for name in sorted(catalogue.capabilities) if _holds(context, held, name)]


def _holds(context: Context, grant: Grant, name: str) -> bool:
    catalogue = context.catalogue
    if name in catalogue.made:
        return _sees_made(context, grant, catalogue.made[name])
    own = catalogue.own_events[name]
    tools = {ref.name for ref in catalogue.capabilities[name].claude_tools}
    if own & ~grant.bits or not tools <= grant.claude_tools:
        return False
    if catalogue.capabilities[name].status == "coming_soon":
        return True  # nobody can use it yet: it is announced to those who hold all it will give
    # One that gives nothing at all is shown only to those who hold it.
    return bool(own or tools) or name in grant.capabilities


def _sees_made(context: Context, grant: Grant, made: Made) -> bool:
    """Holders, the author and all below it; the operator's are seen like those of the files."""
    if made.capability.id in grant.capabilities:
        return True
    if made.author == OPERATOR_ID:
        is_held = not made.bits & ~grant.bits
        return is_held and made.claude_tools <= grant.claude_tools
    return is_author_above(context, context.principal.id, made.author, made.author_key)


def is_author_above(context: Context, name: str, author: str, key: str) -> bool:
    """Tell whether somebody is the author of something, or was spawned below it."""
    fleet = context.services.authority.fleet
    found = fleet.get(author)
    return found is not None and found.public_key == key and fleet.is_under(name, author)


def visible_profiles(context: Context, grant: Grant | None = None) -> dict[str, Grant]:
    """The caller's own profile, and those that grant no more than it holds, sorted by name.

    `grant` is what it holds; that of the request when absent.
    """
    grants = context.catalogue.grants
    held = context.grant if grant is None else grant
    return {
        name: grants[name]
        for name in sorted(grants)
        if context.sees_everything
        or name == context.principal.profile
        or _is_under(grants[name], held)
    }


def _is_under(grant: Grant, ceiling: Grant) -> bool:
    return not grant.bits & ~ceiling.bits and grant.claude_tools <= ceiling.claude_tools
