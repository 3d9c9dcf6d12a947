"""key:* — which clients may connect, and under which profile. Secrets never come here."""

from typing import Annotated, Any

import msgspec

from remit.errors import ExceedsParentError, NotFoundError
from remit.model.fields import Name, NewName
from remit.model.suggest import did_you_mean
from remit.runtime.context import Context
from remit.runtime.delegation import rights_in
from remit.runtime.registry import event_handler
from remit.runtime.view import visible_profiles

PublicKey = Annotated[str, msgspec.Meta(min_length=40, max_length=40)]


def _given_rights(request: Any, ctx: Context) -> Any:
    grant = ctx.catalogue.grants.get(request.profile)
    if grant is None:
        return None
    return rights_in(ctx.services.authority.fleet.with_made(grant, ctx.catalogue))


@event_handler("key:add", capability="key_management", wildcard=False, meaning=_given_rights)
async def add(ctx: Context, name: NewName, public_key: PublicKey, profile: Name) -> dict[str, Any]:
    """Register a client's public key under a profile that grants no more than you hold.

    Args:
        name: the client's name.
        public_key: its CURVE public key in Z85.
        profile: what it may do.
    """
    grants = ctx.catalogue.grants
    visible = visible_profiles(ctx)
    if profile not in grants or (not ctx.sees_everything and profile not in visible):
        raise NotFoundError(
            f"there is no profile {profile!r} that you may give away",
            hint=did_you_mean(profile, visible),
        )
    # Also what was made at run time and is listed there: the giver must hold it like all the rest.
    wanted = ctx.services.authority.fleet.with_made(grants[profile], ctx.catalogue)
    excess = sorted(wanted.events - ctx.grant.events)
    if not ctx.principal.is_operator:
        excess += sorted(wanted.claude_tools - ctx.grant.claude_tools)
    if excess:
        raise ExceedsParentError(
            f"{profile!r} grants more than you hold", details={"excess": excess}
        )
    key = await ctx.services.keyring.add(ctx.services.store, name, public_key, profile)
    return msgspec.structs.asdict(key)


@event_handler("key:list", capability="key_management", effect="read", wildcard=False)
async def list_(ctx: Context) -> dict[str, Any]:
    """List the clients that may connect and whose profile you may see."""
    visible = set(visible_profiles(ctx))
    keys = [
        msgspec.structs.asdict(key)
        for key in ctx.services.keyring.living()
        if key.profile in visible or ctx.sees_everything
    ]
    return {"items": keys, "total": len(keys), "next": None}


@event_handler(
    "key:revoke",
    capability="key_management",
    effect="destructive",
    wildcard=False,
    only_takes=True,
)
async def revoke(ctx: Context, name: Name) -> dict[str, Any]:
    """Take a client's key away: it is cut off at once.

    Args:
        name: the client's name.
    """
    visible = set(visible_profiles(ctx))
    known = {
        key.name
        for key in ctx.services.keyring.living()
        if key.profile in visible or ctx.sees_everything
    }
    if ctx.sees_everything:
        known |= ctx.services.keyring.unrevoked
    if name not in known:
        hint = did_you_mean(name, known)
        raise NotFoundError(f"no living key has the name {name!r}", hint=hint)
    return msgspec.structs.asdict(await ctx.services.keyring.revoke(ctx.services.store, name))
