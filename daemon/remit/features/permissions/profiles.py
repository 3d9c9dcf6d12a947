"""composition:* — profiles: look them up, resolve them, turn explicit lists into capabilities."""

from typing import Annotated, Any

import msgspec

from remit.config.migrate.migrate import migrate as migrate_profile
from remit.config.migrate.rewrite import rewrite_composition
from remit.errors import DeniedError, NotFoundError
from remit.features.permissions.reports import grant_report, remarks
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.visibility import look_up, visible_capabilities, visible_profiles
from remit.model.limits import Effect
from remit.model.schema import PAGE_LIMIT, PAGE_MAX, Key, Name, Variables, page
from remit.policy.compile import resolve as resolve_profile

Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]


@event_handler("composition:list", capability="catalogue_read", effect="read", inline=True)
def list_(ctx: Context, limit: Limit = PAGE_LIMIT, after: Key = "") -> dict[str, Any]:
    """List the profiles that grant no more than you hold.

    Args:
        limit: how many at the most.
        after: the `next` of the page before.
    """

    def describe(name: str) -> dict[str, Any]:
        return {"name": name, "description": ctx.catalogue.compositions[name].description}

    return page(list(visible_profiles(ctx)), describe, limit=limit, after=after)


@event_handler("composition:get", capability="catalogue_read", effect="read", inline=True)
def get(ctx: Context, name: Name) -> dict[str, Any]:
    """Show a profile as it was written, and where.

    Args:
        name: the profile.
    """
    composition = ctx.catalogue.compositions[_visible(ctx, name)]
    visible = set(visible_profiles(ctx))
    answer: dict[str, Any] = {
        "name": name,
        "description": composition.description,
        **remarks(composition),
        "extends": [ref.name for ref in composition.extends if ref.name in visible],
        "mixins": [mixin.ref.name for mixin in composition.mixins if mixin.ref.name in visible],
        "variables": [msgspec.to_builtins(variable) for variable in composition.variables],
        "file": composition.place.file,
    }
    if ctx.sees_everything:
        # The text names what is denied, so it is not for those who are.
        contents = ctx.kernel.authority.current.files.contents
        answer["text"] = contents[composition.place.file].decode("utf-8-sig", "replace")
    return answer


@event_handler("composition:resolve", capability="catalogue_read", effect="read", inline=True)
def resolve(
    ctx: Context,
    profile: Name,
    variables: Variables | None = None,
    max_effect: Effect | None = None,
) -> dict[str, Any]:
    """Show what a profile grants.

    Args:
        profile: the profile.
        variables: values for its variables.
        max_effect: as if the profile said this as well.
    """
    name = _visible(ctx, profile)
    grant = resolve_profile(ctx.catalogue, name, variables=variables, max_effect=max_effect)
    if not ctx.sees_everything and not grant.events <= ctx.grant.events:
        raise NotFoundError(f"there is no profile {profile!r} with these variables for you")
    report = grant_report(ctx.kernel.authority.fleet.with_made(grant, ctx.catalogue))
    if not ctx.sees_everything:
        # The caller's own denials and reviews name things that it may not use.
        withheld = ("denied_events", "denied_claude_tools", "pending_review", "warnings")
        report |= dict.fromkeys(withheld, ())
        shown = {*ctx.grant.capabilities, *visible_capabilities(ctx)}
        report["capabilities"] = [name for name in grant.capabilities if name in shown]
    return report


@event_handler("composition:migrate", capability="catalogue_draft", effect="read")
def migrate(ctx: Context, name: Name) -> dict[str, Any]:
    """Turn a profile's explicit list into capabilities that resolve to the same.

    Args:
        name: the profile.
    """
    composition = ctx.catalogue.compositions[_visible(ctx, name)]
    if not ctx.sees_everything:
        message = "a migration shows the whole text of a profile"
        hint = "ask an operator to run: remit migrate"
        raise DeniedError(message, reason="no_grant", hint=hint)
    migration = migrate_profile(ctx.catalogue, composition)
    files = ctx.kernel.authority.current.files
    text = files.contents[composition.place.file].decode("utf-8-sig")
    return migration.to_json() | {"text": rewrite_composition(text, migration)}


def _visible(ctx: Context, name: str) -> str:
    look_up(name, visible_profiles(ctx), "profile")
    return name
