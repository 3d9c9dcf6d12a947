"""What a caller may be shown: nothing that it could not use.

One rule for events, capabilities and profiles, so that no list or count tells more than a check.
"""

from remit.model.grant import Grant
from remit.policy.catalogue import Catalogue
from remit.runtime.context import Context


def visible_capabilities(context: Context) -> list[str]:
    """The capabilities whose events and model tools the caller holds all, sorted."""
    catalogue = context.catalogue
    if context.sees_everything:
        return sorted(catalogue.capabilities)
    return [name for name in sorted(catalogue.capabilities) if _holds(context, catalogue, name)]


def _holds(context: Context, catalogue: Catalogue, name: str) -> bool:
    own = catalogue.own_events[name]
    tools = {ref.name for ref in catalogue.capabilities[name].claude_tools}
    if own & ~context.grant.bits or not tools <= context.grant.claude_tools:
        return False
    # One that gives nothing at all is shown only to those who hold it.
    return bool(own or tools) or name in context.grant.capabilities


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
