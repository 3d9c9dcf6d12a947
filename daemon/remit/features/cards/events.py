"""awareness:* — cards about what is special here, for the conversations that touch it.

Everybody is told only of cards that they may be given: one that is bound to capabilities exists for
their holders alone. What is wrong with cards is for those who see everything, and so are reviews of
suspicious ones: whoever decides what is put before every agent must not be an agent that sees only
its own part.
"""

from typing import Annotated, Any

import msgspec

from remit.errors import DeniedError, NotFoundError
from remit.features.cards.card import MAX_CARD_BYTES
from remit.features.cards.service import Cards
from remit.features.cards.sources import CardCatalogues, StoredCards
from remit.features.cards.views import (
    MOST_REASONS,
    Question,
    Recipient,
    card_entry,
    card_state,
)
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.visibility import look_up
from remit.model.schema import PAGE_LIMIT, PAGE_MAX, Key, page

Name = Annotated[str, msgspec.Meta(max_length=256)]
Content = Annotated[str, msgspec.Meta(max_length=1 << 20)]


class ConversationMessage(msgspec.Struct, frozen=True):
    """One message of a conversation."""

    content: Content
    role: Name = ""


Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]
FewCards = Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)]
"""A card may have kilobytes of keywords, and an answer has to fit into a message."""
Messages = Annotated[list[Content | ConversationMessage], msgspec.Meta(max_length=10_000)]
Files = Annotated[list[dict[str, Any]], msgspec.Meta(max_length=1_000)]
Budget = Annotated[int, msgspec.Meta(ge=0, le=20_000)]
CardFile = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_CARD_BYTES)]
Note = Annotated[str, msgspec.Meta(max_length=500)]


@event_handler("awareness:select", capability="awareness", effect="read")
async def select(  # noqa: PLR0913 - one for each field
    ctx: Context,
    cards: Cards,
    messages: Messages,
    session_type: Name = "main",
    *,
    token_budget: Budget | None = None,
    session: Name | None = None,
    user_tier: Name = "",
    environment: Name = "",
) -> dict[str, Any]:
    """Tell which cards a conversation calls for, and why others are left out; counts nothing.

    Args:
        messages: the conversation, oldest first; the latest few are looked at.
        session_type: what kind of session it is, as in main or isolated.
        token_budget: tokens of all cards together; as configured when absent.
        session: which session it is; that of the request when absent.
        user_tier: what kind of user it is for.
        environment: where it runs, as in production.
    """
    question = _question(ctx, messages, session_type, session, user_tier, environment, token_budget)
    chosen = await cards.select(_caller(ctx), question)
    return chosen.record()


@event_handler("awareness:inject", capability="awareness", effect="read")
async def inject(  # noqa: PLR0913 - one for each field
    ctx: Context,
    cards: Cards,
    files: Files,
    messages: Messages,
    session_type: Name = "main",
    *,
    token_budget: Budget | None = None,
    session: Name | None = None,
    user_tier: Name = "",
    environment: Name = "",
) -> dict[str, Any]:
    """Put the cards that a conversation calls for into a CAPABILITIES.md among its files.

    Args:
        files: what the agent is started with; each has a path or a name, and content.
        messages: the conversation, oldest first; the latest few are looked at.
        session_type: what kind of session it is, as in main or isolated.
        token_budget: tokens of all cards together; as configured when absent.
        session: which session it is; that of the request when absent.
        user_tier: what kind of user it is for.
        environment: where it runs, as in production.
    """
    question = _question(ctx, messages, session_type, session, user_tier, environment, token_budget)
    chosen, out = await cards.inject(_caller(ctx), question, files)
    record = chosen.record()
    if record["mode"] == "on" and record["total_tokens"]:  # else nothing was put there
        ctx.kernel.bills.charge(ctx.principal.id, "cards", record["total_tokens"])
    return {"files": out, **record}


@event_handler("awareness:cards", capability="awareness", effect="read")
async def cards(
    ctx: Context, cards: Cards, limit: FewCards = PAGE_LIMIT, after: Key = ""
) -> dict[str, Any]:
    """List the cards that you may be given.

    Args:
        limit: how many at the most.
        after: the `next` of the page before.
    """
    everything = ctx.sees_everything
    seen = await cards.visible(_caller(ctx))
    listed = page(
        sorted(seen),
        lambda name: card_entry(seen[name], everything=everything),
        limit=limit,
        after=after,
    )
    listed["mode"] = cards.mode
    if everything:
        found = await cards.cache.cards()
        listed |= cards.status() | card_state(found, ctx.catalogue.capabilities)
    return listed


@event_handler("awareness:read", capability="awareness", effect="read")
async def read(ctx: Context, cards: Cards, id: Name) -> dict[str, Any]:  # noqa: A002 - a field
    """Read the reference document of a card that you may be given.

    Args:
        id: which card.
    """
    seen = await cards.visible(_caller(ctx))
    ready = look_up(id, seen, "card", purpose="read")
    if not ready.reference:
        link = ready.card.reference
        hint = f"it stands at {link}" if link else "its text is all that there is"
        raise NotFoundError(f"the card {id!r} has no reference document here", hint=hint)
    tokens = await cards.count(ready.reference)
    ctx.kernel.bills.charge(ctx.principal.id, "cards", tokens)
    card = ready.card
    return {
        "id": card.id,
        "name": card.name,
        "version": card.version,
        "text": ready.reference,
        "tokens": tokens,
    }


@event_handler("awareness:put", capability="awareness_admin", effect="write", wildcard=False)
async def put(ctx: Context, cards: Cards, stored: StoredCards, card: CardFile) -> dict[str, Any]:
    """Keep a card in the store of the daemon; it counts from the next call on.

    Args:
        card: its Markdown with frontmatter, as in a file; one of that id is replaced.
    """
    _for_the_operator(ctx)
    ready = await cards.cache.check(card)
    name = ready.card.id
    await stored.put(name, card, by=ctx.principal.id)
    in_force = {one.card.id: one for one in (await cards.cache.cards()).cards}[name]
    is_own = in_force.card.source == "store"
    return {
        "id": name,
        "version": ready.card.version,
        "content_hash": ready.content_hash,
        "tokens": ready.tokens,
        "quarantined": in_force.is_quarantined if is_own else ready.is_quarantined,
        "reasons": list(ready.reasons)[:MOST_REASONS],
        "shadowed_by": "" if is_own else str(in_force.card.place),
    }


@event_handler("awareness:remove", capability="awareness_admin", effect="write", wildcard=False)
async def remove(ctx: Context, stored: StoredCards, id: Name) -> dict[str, Any]:  # noqa: A002
    """Forget a card that was put.

    Args:
        id: which card.
    """
    _for_the_operator(ctx)
    gone = await stored.remove(id)
    return {"id": id, "by": gone.by, "at": gone.at}


@event_handler(
    "awareness:refresh",
    capability="awareness_admin",
    effect="write",
    open_world=True,
    wildcard=False,
    timeout=300.0,
)
async def refresh(ctx: Context, catalogues: CardCatalogues, accept: Name = "") -> dict[str, Any]:
    """Fetch the catalogues of cards now, and tell how each stands.

    Args:
        accept: the SHA-256 of a content that you have looked at; it becomes the pinned one.
    """
    _for_the_operator(ctx)
    return {"items": [msgspec.to_builtins(one) for one in await catalogues.refresh(accept)]}


def _for_the_operator(ctx: Context) -> None:
    """Refuse who sees only its own part: it must not decide what is put before every agent."""
    if not ctx.sees_everything:
        message = "only the operator decides where cards come from"
        raise DeniedError(message, reason="no_grant", hint="ask the operator")


@event_handler("awareness:outcome", capability="awareness_feedback", effect="write", fleeting=True)
async def outcome(
    ctx: Context,
    cards: Cards,
    useful: bool,  # noqa: FBT001 - a field of the request
    session: Name | None = None,
    note: Note = "",
) -> dict[str, Any]:
    """Report whether the cards of your latest injection were of use.

    Args:
        useful: whether they helped.
        session: which session; that of the request when absent.
        note: why, for the operator.
    """
    name = session if session is not None else ctx.session or ""
    turn = cards.memory.report(ctx.principal.id, name, useful=useful, note=note)
    if turn is None:
        raise NotFoundError("nothing was injected there", hint="name the session of the injection")
    return {"session": name, "injected": list(turn.injected), "useful": useful}


@event_handler("awareness:outcomes", capability="awareness_admin", effect="read", wildcard=False)
async def outcomes(
    ctx: Context,
    cards: Cards,
    limit: Limit = PAGE_LIMIT,
    after: Annotated[int, msgspec.Meta(ge=0)] = 0,
) -> dict[str, Any]:
    """Read the latest injections and what came of them, newest first, and a tally by scorer.

    Args:
        limit: how many at the most.
        after: the `next` of the page before.
    """
    memory = cards.memory
    found = list(reversed(memory.turns))
    more = after + limit < len(found)
    return {
        "items": [msgspec.to_builtins(turn) for turn in found[after : after + limit]],
        "total": len(found),
        "next": after + limit if more else None,
        "scorers": msgspec.to_builtins(memory.tallies),
    }


@event_handler("awareness:switch", capability="awareness_admin", effect="write", wildcard=False)
async def switch(
    ctx: Context,
    cards: Cards,
    on: bool,  # noqa: FBT001 - a field of the request
    reason: Note = "",
) -> dict[str, Any]:
    """Stop the injection of cards, or let it go on after it was stopped.

    Args:
        on: whether cards may be injected.
        reason: why, for whoever looks later.
    """
    await cards.switch(on=on, by=ctx.principal.id, reason=reason)
    return cards.status()


@event_handler(
    "awareness:stopped", capability="awareness_admin", effect="read", wildcard=False, pushed=True
)
def stopped(reason: str, sessions: int, injected: int) -> None:
    """The injection of cards has stopped itself: too many sessions were given some.

    Args:
        reason: what was found.
        sessions: how many there were in a day.
        injected: how many of them were given cards.
    """


def _caller(ctx: Context) -> Recipient:
    return Recipient(
        ctx.principal.id,
        frozenset(ctx.grant.capabilities).difference(ctx.catalogue.runtime_capabilities),
        everything=ctx.sees_everything,
        decision=ctx.decision,
        revision=ctx.catalogue.revision,
    )


def _question(  # noqa: PLR0913, PLR0917 - the fields of a request
    ctx: Context,
    messages: list[str | ConversationMessage],
    session_type: str,
    session: str | None,
    user_tier: str,
    environment: str,
    token_budget: int | None,
) -> Question:
    return Question(
        messages=tuple(one if isinstance(one, str) else one.content for one in messages),
        session_type=session_type,
        session=session if session is not None else ctx.session or "",
        token_budget=token_budget,
        user_tier=user_tier,
        environment=environment,
    )
