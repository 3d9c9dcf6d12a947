"""key:* — which clients may connect, and under which profile. Secrets never come here."""

from typing import Annotated, Any

import msgspec

from remit.errors import ExceedsParentError
from remit.model.fields import Name, NewName
from remit.model.principal import RESERVED
from remit.runtime.context import Context
from remit.runtime.delegation import rights_in, withheld
from remit.runtime.lookup import free_name, look_up, unseen
from remit.runtime.registry import event_handler
from remit.runtime.view import visible_profiles

NAME_BYTES = 64
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
    listed = look_up(profile, visible_profiles(ctx), "profile", purpose="give away")
    # Also what was made at run time and is listed there: the giver must hold it like all the rest.
    wanted = ctx.services.authority.fleet.with_made(listed, ctx.catalogue)
    excess = sorted(wanted.events - ctx.grant.events)
    if not ctx.principal.is_operator:
        excess += sorted(wanted.claude_tools - ctx.grant.claude_tools)
    if excess:
        told = excess if ctx.principal.is_operator else [profile]
        message = f"{profile!r} grants more than you hold"
        error = ExceedsParentError(message, details={"excess": told})
        error.withheld = withheld(excess)
        raise error
    keyring = ctx.services.keyring
    if not keyring.is_free(name) and name not in RESERVED and name not in _known(ctx):
        name = free_name(name, keyring.is_free, most=NAME_BYTES)
    key = await keyring.add(ctx.services.store, name, public_key, profile)
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
    known = {key.name for key in ctx.services.keyring.living()} | ctx.services.keyring.unrevoked
    seen = known & _known(ctx)
    if name not in seen:
        raise unseen(name, seen, "living key")
    return msgspec.structs.asdict(await ctx.services.keyring.revoke(ctx.services.store, name))


def _known(ctx: Context) -> set[str]:
    """The names of clients and agents that the caller knows of anyway."""
    keyring, fleet = ctx.services.keyring, ctx.services.authority.fleet
    if ctx.principal.is_operator:
        return {*fleet.names(), *keyring.unrevoked}
    seen = visible_profiles(ctx)
    known = {key.name for key in keyring.living() if ctx.sees_everything or key.profile in seen}
    return {*known, *fleet.subtree(ctx.principal.id)}
