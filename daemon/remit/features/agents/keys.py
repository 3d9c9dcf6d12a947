"""key:* — which clients may connect, under which profile, and the bearer tokens they carry.

Secrets never come here.
"""

import secrets
from typing import Annotated, Any

import msgspec

from remit.errors import ExceedsParentError
from remit.features.agents.delegation import rights_in, withheld
from remit.features.agents.tokens import TokenIssuer
from remit.kernel.authority.keyring import token_hash
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.visibility import free_name, look_up, unseen, visible_profiles
from remit.model.principal import ID_LENGTH, RESERVED, Principal, Token
from remit.model.schema import Name, NewName, whole

NAME_BYTES = 64
PublicKey = Annotated[str, msgspec.Meta(min_length=40, max_length=40)]
DAY = 86_400
MONTH = 30 * DAY
Lifetime = Annotated[int, msgspec.Meta(ge=1, le=366 * DAY)]
Audience = Annotated[str, whole(r"[a-z][a-z0-9_-]{0,63}", most=64)]


def _given_rights(request: Any, ctx: Context) -> Any:
    grant = ctx.catalogue.grants.get(request.profile)
    if grant is None:
        return None
    return rights_in(ctx.kernel.authority.fleet.with_made(grant, ctx.catalogue))


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
    wanted = ctx.kernel.authority.fleet.with_made(listed, ctx.catalogue)
    excess = sorted(wanted.events - ctx.grant.events)
    if not ctx.principal.is_operator:
        excess += sorted(wanted.claude_tools - ctx.grant.claude_tools)
    if excess:
        told = excess if ctx.principal.is_operator else [profile]
        message = f"{profile!r} grants more than you hold"
        error = ExceedsParentError(message, details={"excess": told})
        error.withheld = withheld(excess)
        raise error
    keyring = ctx.kernel.keyring
    if not keyring.is_free(name) and name not in RESERVED and name not in _known(ctx):
        name = free_name(name, keyring.is_free, most=NAME_BYTES)
    key = await keyring.add(name, public_key, profile)
    return msgspec.structs.asdict(key)


@event_handler("key:list", capability="key_management", effect="read", wildcard=False)
async def list_(ctx: Context) -> dict[str, Any]:
    """List the clients that may connect and whose profile you may see."""
    visible = set(visible_profiles(ctx))
    keys = [
        msgspec.structs.asdict(key)
        for key in ctx.kernel.keyring.living()
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
    known = {key.name for key in ctx.kernel.keyring.living()} | ctx.kernel.keyring.unrevoked
    seen = known & _known(ctx)
    if name not in seen:
        raise unseen(name, seen, "living key")
    return msgspec.structs.asdict(await ctx.kernel.keyring.revoke(name))


def _known(ctx: Context) -> set[str]:
    """The names of clients and agents that the caller knows of anyway."""
    keyring, fleet = ctx.kernel.keyring, ctx.kernel.authority.fleet
    if ctx.principal.is_operator:
        return {*fleet.names(), *keyring.unrevoked}
    seen = visible_profiles(ctx)
    known = {key.name for key in keyring.living() if ctx.sees_everything or key.profile in seen}
    return {*known, *fleet.subtree(ctx.principal.id)}


@event_handler("key:token", capability="key_management", wildcard=False)
async def token(
    ctx: Context,
    tokens: TokenIssuer,
    name: Name | None = None,
    expires_in: Lifetime = MONTH,
    audience: Audience = "http",
) -> dict[str, Any]:
    """Make a bearer token for yourself; the operator makes them for others too. It is shown once.

    Args:
        name: whose token it is; absent: yours.
        expires_in: seconds until it counts no longer.
        audience: the face where it counts.
    """
    owner = _owner(ctx, name)
    made = f"remit_{secrets.token_urlsafe(32)}"  # programs that look for leaked secrets know it
    kept = await tokens.add(owner, token_hash(made), audience=audience, seconds=expires_in)
    return _shown(kept) | {"token": made}


def _owner(ctx: Context, name: str | None) -> Principal:
    """Who shows a token is taken for its owner: only the operator may lend others' names."""
    if name is None or name == ctx.principal.id:
        return ctx.principal
    found = ctx.kernel.keyring.principal(name) if ctx.principal.is_operator else None
    if found is None:
        known = ctx.kernel.authority.fleet.names() if ctx.principal.is_operator else ()
        raise unseen(name, known, "client or agent", purpose="make a token for")
    return found


@event_handler("key:tokens", capability="key_management", effect="read", wildcard=False)
async def tokens(ctx: Context) -> dict[str, Any]:
    """List the bearer tokens that were made for you; for the operator, those of everybody."""
    found = [_shown(one) for one in _visible(ctx)]
    return {"items": found, "total": len(found), "next": None}


@event_handler(
    "key:revoke_token",
    capability="key_management",
    effect="destructive",
    wildcard=False,
    only_takes=True,
)
async def revoke_token(ctx: Context, tokens: TokenIssuer, id: Name) -> dict[str, Any]:  # noqa: A002 - the wire calls it id
    """Take a bearer token back: it counts no longer at once, and open streams of it are cut.

    Args:
        id: as key:tokens lists it.
    """
    found = tokens.find(id) if len(id) == ID_LENGTH else None
    if found is None or not (ctx.principal.is_operator or found.owner == ctx.principal.id):
        raise unseen(id, [one.id for one in _visible(ctx)], "token")
    await tokens.revoke(found)
    return _shown(found)


def _visible(ctx: Context) -> list[Token]:
    ring = ctx.kernel.keyring.tokens
    made = [one for one in ring.made() if ring.counts(one)]
    if ctx.principal.is_operator:
        return made
    return [one for one in made if one.owner == ctx.principal.id]


def _shown(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.owner,
        "audience": token.audience,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
    }
