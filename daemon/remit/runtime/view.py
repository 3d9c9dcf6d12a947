"""What a caller may be shown: nothing that it could not use.

One rule for events, capabilities and profiles, so that no list or count tells more than a check.
"""

from remit.model.grant import Grant
from remit.model.principal import OPERATOR_ID
from remit.policy.catalogue import Catalogue, Made
from remit.runtime.context import Context


def visible_capabilities(context: Context) -> list[str]:
    """The capabilities whose events and model tools the caller holds all, sorted."""
    catalogue = context.catalogue
    if context.sees_everything:
        return sorted(catalogue.capabilities)
    return [name for name in sorted(catalogue.capabilities) if _holds(context, catalogue, name)]


def _holds(context: Context, catalogue: Catalogue, name: str) -> bool:
    if name in catalogue.made:
        return _sees_made(context, catalogue.made[name])
    own = catalogue.own_events[name]
    tools = {ref.name for ref in catalogue.capabilities[name].claude_tools}
    if own & ~context.grant.bits or not tools <= context.grant.claude_tools:
        return False
    if catalogue.capabilities[name].status == "coming_soon":
        return True  # nobody can use it yet: it is announced to those who hold all it will give
    # One that gives nothing at all is shown only to those who hold it.
    return bool(own or tools) or name in context.grant.capabilities


def _sees_made(context: Context, made: Made) -> bool:
    """Holders, the author and all below it; the operator's are seen like those of the files."""
    if made.capability.id in context.grant.capabilities:
        return True
    if made.author == OPERATOR_ID:
        is_held = not made.bits & ~context.grant.bits
        return is_held and made.claude_tools <= context.grant.claude_tools
    return is_author_above(context, context.principal.id, made.author, made.author_key)


def is_author_above(context: Context, name: str, author: str, key: str) -> bool:
    """Tell whether somebody is the author of something, or was spawned below it."""
    fleet = context.services.authority.fleet
    found = fleet.get(author)
    return found is not None and found.public_key == key and fleet.is_under(name, author)


def visible_profiles(context: Context) -> list[str]:
    """The caller's own profile, and those that grant no more than it holds, sorted."""
    grants = context.catalogue.grants
    if context.sees_everything:
        return sorted(grants)
    return [
        name
        for name in sorted(grants)
        if name == context.principal.profile or _is_under(grants[name], context.grant)
    ]


def _is_under(grant: Grant, ceiling: Grant) -> bool:
    return not grant.bits & ~ceiling.bits and grant.claude_tools <= ceiling.claude_tools
