"""composition:* — profiles: look them up, resolve them, try edits without effect."""

from collections.abc import Mapping, Set
from typing import Annotated, Any

import msgspec

from remit.errors import DeniedError, NotFoundError
from remit.features.permissions.drafts import Draft, compile_draft, shown_name
from remit.features.permissions.reports import check_report, grant_report, remarks
from remit.kernel.authority.plans import plan_between
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.visibility import look_up, visible_capabilities, visible_profiles
from remit.model.event import Effect
from remit.model.grant import Grant
from remit.model.names import Name
from remit.model.place import DefinitionError
from remit.model.requests import PAGE_LIMIT, PAGE_MAX, FileText, Key, Variables, bounded, page
from remit.policy.compile import resolve as resolve_profile
from remit.policy.decide import confine
from remit.policy.plan import AgentChange
from remit.policy.plan import plan as make_plan

Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]
Texts = Annotated[dict[Key, FileText], msgspec.Meta(max_length=10_000)]
Removed = Annotated[list[Key], msgspec.Meta(max_length=10_000)]


@event_handler("composition:list", capability="catalogue_read", effect="read", inline=True)
def list_(ctx: Context, limit: Limit = PAGE_LIMIT, after: Key = "") -> dict[str, Any]:
    """List the profiles that grant no more than you hold.

    Args:
        limit: how many at the most.
        after: the `next` of the page before.
    """
    compositions = ctx.catalogue.compositions

    def describe(name: str) -> dict[str, Any]:
        return {"name": name, "description": compositions[name].description}

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
        report |= dict.fromkeys(
            ("denied_events", "denied_claude_tools", "pending_review", "warnings"), ()
        )
        shown = {*ctx.grant.capabilities, *visible_capabilities(ctx)}
        report["capabilities"] = [name for name in grant.capabilities if name in shown]
    return report


@event_handler("composition:validate", capability="catalogue_draft", effect="read")
def validate(
    ctx: Context,
    compositions: Texts | None = None,
    catalogue: FileText | None = None,
    remove: Removed | None = None,
) -> dict[str, Any]:
    """Check edited files against those in force, and put nothing in force.

    Args:
        compositions: edited composition files: their text by file name, as in 'reviewer.yaml'.
        catalogue: the edited capabilities.yaml.
        remove: composition files to leave out.
    """
    try:
        compiled = compile_draft(ctx, Draft(compositions or {}, catalogue, remove or []))
    except DefinitionError as error:
        return check_report(None, error.problems)
    if ctx.sees_everything:
        return check_report(compiled, compiled.warnings)
    counts = {
        "capabilities": len(visible_capabilities(ctx)),
        "profiles": len(visible_profiles(ctx)),
        "events": len(ctx.grant.events),
    }
    # Warnings speak of what a profile comes to hold through others, hidden or not.
    return check_report(compiled, []) | {"counts": counts}


@event_handler("composition:plan", capability="catalogue_draft", effect="read")
def plan(
    ctx: Context,
    compositions: Texts | None = None,
    catalogue: FileText | None = None,
    remove: Removed | None = None,
    complete: bool = False,  # noqa: FBT001, FBT002 - a field of the request
) -> dict[str, Any]:
    """Tell what edited files would grant and take away, and put nothing in force.

    Args:
        compositions: edited composition files: their text by file name, as in 'reviewer.yaml'.
        catalogue: the edited capabilities.yaml.
        remove: composition files to leave out.
        complete: whether all composition files that are not given are to be left out.
    """
    draft = Draft(compositions or {}, catalogue, remove or [], complete)
    tried = compile_draft(ctx, draft)
    fleet = ctx.kernel.authority.fleet
    if ctx.sees_everything:
        found = plan_between(fleet, ctx.catalogue, tried)
        return bounded(found.to_json(), "agents", "profiles")
    # Of profiles that are visible or new; what the caller does not hold itself stays hidden.
    hidden = ctx.catalogue.grants.keys() - visible_profiles(ctx).keys()
    found = plan_between(fleet, ctx.catalogue, tried, agents=fleet.subtree(ctx.principal.id))
    before = _confined(ctx, ctx.catalogue.grants, hidden)
    tried_grants = {
        shown_name(name): one for name, one in tried.grants.items() if name not in hidden
    }
    after = _confined(ctx, tried_grants, frozenset())
    agents = {name: one for name, one in found.agent_changes.items() if _is_known(ctx, one)}
    return bounded(make_plan(before, after, agents=agents).to_json(), "agents", "profiles")


def _is_known(ctx: Context, one: AgentChange) -> bool:
    """Tell whether a change of an agent names nothing that the caller may not use."""
    change = one.change
    events = {*change.granted, *change.revoked, *change.tools_shown, *change.tools_hidden}
    tools = {*change.tools_granted, *change.tools_revoked}
    return events <= ctx.grant.events and tools <= ctx.grant.claude_tools


def _confined(ctx: Context, grants: Mapping[str, Grant], hidden: Set[str]) -> dict[str, Grant]:
    # Reviews and denials name what the caller may not use, and commands are the operator's affair.
    return {
        name: msgspec.structs.replace(
            confine(ctx.catalogue, grant, ctx.grant),
            pending_review=(),
            denied_events=(),
            denied_tools=frozenset(),
            launcher=None,
        )
        for name, grant in grants.items()
        if name not in hidden
    }


@event_handler("composition:migrate", capability="catalogue_draft", effect="read")
def migrate(ctx: Context, name: Name) -> dict[str, Any]:
    """Turn a profile's explicit list into capabilities that resolve to the same.

    Args:
        name: the profile.
    """
    from remit.config.migrate.migrate import migrate as migrate_profile  # noqa: PLC0415
    from remit.config.migrate.rewrite import rewrite_composition  # noqa: PLC0415 - only this needs them

    composition = ctx.catalogue.compositions[_visible(ctx, name)]
    if not ctx.sees_everything:
        raise DeniedError(
            "a migration shows the whole text of a profile",
            reason="no_grant",
            hint="ask an operator to run: remit migrate",
        )
    migration = migrate_profile(ctx.catalogue, composition)
    files = ctx.kernel.authority.current.files
    text = files.contents[composition.place.file].decode("utf-8-sig")
    return migration.to_json() | {"text": rewrite_composition(text, migration)}


def _visible(ctx: Context, name: str) -> str:
    look_up(name, visible_profiles(ctx), "profile")
    return name
