"""Tokens: made for oneself, or by the operator; shown once; they end with their owner."""

from typing import Any

import pytest
from tests.fakes import Desk, built_in_handlers, starter_files

from remit.errors import StoreError
from remit.features.agents.tokens import MAX_OF_ONE, TokenIssuer, TokenRows
from remit.kernel.authority.keyring import KeyRing
from remit.model.principal import Bearer
from remit_client.wire import Answer


@pytest.fixture
async def desk() -> Desk:
    desk = Desk(built_in_handlers(), starter_files())
    for number, name in enumerate(("eve", "adam")):
        key = {"name": name, "public_key": f"{number:040d}", "profile": "administrator"}
        await desk.ask("operator", "key:add", key)
    return desk


async def ask(desk: Desk, who: str, event: str, **data: Any) -> Answer:
    principal = desk.keyring.principal(who)
    assert principal is not None
    return await desk.dispatcher.dispatch(principal, event, data)


def holder(desk: Desk, token: str, audience: str = "http") -> Bearer | None:
    return desk.keyring.bearer(token, audience)


async def test_the_operator_makes_a_token_for_anybody_who_lives(desk: Desk) -> None:
    made = await desk.ask("operator", "key:token", {"name": "eve", "expires_in": 60})
    found = holder(desk, made["token"])
    assert found is not None
    assert (found.principal.id, made["name"], made["audience"]) == ("eve", "eve", "http")
    assert made["expires_at"] - made["created_at"] == pytest.approx(60)
    refused = await desk.answer("operator", "key:token", {"name": "ewe"})
    assert refused.error is not None
    assert (refused.error.code, refused.error.hint) == ("not_found", "did you mean 'eve'?")


async def test_others_make_tokens_for_themselves_and_for_nobody_else(desk: Desk) -> None:
    own = await ask(desk, "eve", "key:token")
    assert own.error is None
    assert own.data["name"] == "eve"
    for name in ("adam", "operator", "nobody"):
        refused = await ask(desk, "eve", "key:token", name=name)
        assert refused.error is not None
        assert (refused.error.code, refused.error.hint) == ("not_found", "")


async def test_others_see_and_revoke_only_their_own_tokens(desk: Desk) -> None:
    made = await desk.ask("operator", "key:token", {"name": "adam"})
    own = await ask(desk, "eve", "key:token")
    assert own.error is None
    listed = await ask(desk, "eve", "key:tokens")
    assert [one["id"] for one in listed.data["items"]] == [own.data["id"]]
    refused = await ask(desk, "eve", "key:revoke_token", id=made["id"])
    absent = await ask(desk, "eve", "key:revoke_token", id="0" * 12)
    assert refused.error is not None
    assert absent.error is not None
    assert refused.error.message.replace(made["id"], "0" * 12) == absent.error.message
    assert holder(desk, made["token"]) is not None


async def test_a_token_counts_where_it_was_made_for(desk: Desk) -> None:
    made = await desk.ask("operator", "key:token", {"audience": "mcp"})
    assert holder(desk, made["token"], "http") is None
    assert holder(desk, made["token"], "mcp") is not None


@pytest.mark.parametrize(
    "wrong",
    [{"expires_in": 0}, {"expires_in": 31_708_801}, {"audience": ""}, {"audience": "a b"}],
)
async def test_a_token_that_makes_no_sense_is_refused(desk: Desk, wrong: dict[str, Any]) -> None:
    answer = await desk.answer("operator", "key:token", wrong)
    assert answer.error is not None
    assert answer.error.code == "invalid_data"


async def test_one_principal_has_only_so_many_tokens(desk: Desk) -> None:
    for _ in range(MAX_OF_ONE):
        await desk.ask("operator", "key:token", {"expires_in": 60})
    answer = await desk.answer("operator", "key:token")
    assert answer.error is not None
    assert answer.error.code == "limit_exceeded"
    now = desk.keyring.tokens.clock()
    desk.keyring.tokens.clock = lambda: now + 61
    await desk.ask("operator", "key:token")
    assert (await desk.ask("operator", "key:tokens"))["total"] == 1


async def test_a_revoked_token_counts_no_longer_even_when_the_store_fails(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await desk.ask("operator", "key:token")

    async def fail(_rows: TokenRows, _hashes: object) -> int:
        raise StoreError("no room")

    monkeypatch.setattr(TokenRows, "token_remove", fail)
    answer = await desk.answer("operator", "key:revoke_token", {"id": made["id"]})
    assert answer.error is not None
    assert holder(desk, made["token"]) is None
    monkeypatch.undo()
    await desk.ask("operator", "key:revoke_token", {"id": made["id"]})
    assert await desk.store.token_list() == ()


async def test_a_restart_finds_the_tokens_of_those_who_are_still_the_same(desk: Desk) -> None:
    made = await desk.ask("operator", "key:token", {"name": "eve"})
    mine = await desk.ask("operator", "key:token", {})
    store, fleet = desk.store, desk.authority.fleet
    for key, still_mine in (("operator-key", True), ("another-key", False)):
        ring = KeyRing(key, fleet, store)
        await TokenIssuer(store, ring).load()
        assert ring.bearer(made["token"], "http") is not None
        assert (ring.bearer(mine["token"], "http") is not None) == still_mine
    assert [one.owner for one in await store.token_list()] == ["eve"]
