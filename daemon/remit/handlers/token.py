"""key:token… — bearer tokens, for callers that speak HTTP."""

from typing import Annotated, Any

import msgspec

from remit.model.bearer import ID_LENGTH, Token
from remit.model.fields import Name, whole
from remit.model.principal import Principal
from remit.runtime.context import Context
from remit.runtime.lookup import unseen
from remit.runtime.registry import event_handler

DAY = 86_400
MONTH = 30 * DAY

Lifetime = Annotated[int, msgspec.Meta(ge=1, le=366 * DAY)]
Audience = Annotated[str, whole(r"[a-z][a-z0-9_-]{0,63}", most=64)]


@event_handler("key:token", capability="key_management", wildcard=False)
async def token(
    ctx: Context,
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
    # Commands without a daemon list the events here, and must not load libzmq and OpenSSL.
    from remit.runtime.credentials import new_token, token_hash  # noqa: PLC0415

    owner = _owner(ctx, name)
    made = new_token()
    kept = await ctx.services.tokens.add(
        owner, token_hash(made), audience=audience, seconds=expires_in
    )
    return _shown(kept) | {"token": made}


def _owner(ctx: Context, name: str | None) -> Principal:
    """Who shows a token is taken for its owner: only the operator may lend others' names."""
    if name is None or name == ctx.principal.id:
        return ctx.principal
    found = ctx.services.keyring.principal(name) if ctx.principal.is_operator else None
    if found is None:
        known = ctx.services.authority.fleet.names() if ctx.principal.is_operator else ()
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
async def revoke_token(ctx: Context, id: Name) -> dict[str, Any]:  # noqa: A002 - the wire calls it id
    """Take a bearer token back: it counts no longer at once, and open streams of it are cut.

    Args:
        id: as key:tokens lists it.
    """
    keeper = ctx.services.tokens
    found = keeper.find(id) if len(id) == ID_LENGTH else None
    if found is None or not (ctx.principal.is_operator or found.owner == ctx.principal.id):
        raise unseen(id, [one.id for one in _visible(ctx)], "token")
    await keeper.revoke(found)
    return _shown(found)


def _visible(ctx: Context) -> list[Token]:
    ring = ctx.services.keyring.tokens
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
