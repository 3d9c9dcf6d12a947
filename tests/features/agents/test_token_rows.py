"""What a store promises of bearer tokens."""

import msgspec
import pytest
from tests.rows import NOW, agent, public_key

from remit.app.store import Store
from remit.errors import ConflictError, InvalidDataError
from remit.kernel.store.records import TokenRecord


def token(hash_: str, owner: str = "eve", at: float = NOW) -> TokenRecord:
    return TokenRecord(hash_, owner, public_key(1), "http", at, at + 60)


async def test_tokens_come_back_whole_and_older_ones_first(store: Store) -> None:
    kept = [token("b", at=NOW), token("a", at=NOW), token("c", at=NOW - 1)]
    for one in kept:
        await store.token_add(one)
    assert await store.token_list() == (kept[2], kept[1], kept[0])


async def test_a_hash_is_kept_once(store: Store) -> None:
    await store.token_add(token("a"))
    with pytest.raises(ConflictError):
        await store.token_add(token("a", "ann"))
    assert await store.token_list() == (token("a"),)


async def test_removing_tokens_counts_only_those_that_were_there(store: Store) -> None:
    await store.token_add(token("a"))
    await store.token_add(token("b"))
    assert await store.token_remove(["a", "a", "x"]) == 1
    assert await store.token_remove([]) == 0
    assert await store.token_list() == (token("b"),)


async def test_the_tokens_of_an_agent_and_of_a_client_go_with_them(store: Store) -> None:
    await store.agent_add(agent("a", 1))
    await store.key_add("k", public_key(2), "p")
    for owner in ("a", "k", "operator"):
        await store.token_add(token(owner, owner))
    await store.agent_remove(["a"])
    await store.key_revoke("k")
    assert [one.owner for one in await store.token_list()] == ["operator"]


@pytest.mark.parametrize(
    "changes",
    [{"hash": ""}, {"owner": ""}, {"audience": "\ud800"}, {"expires_at": float("nan")}],
)
async def test_an_impossible_token_is_refused(store: Store, changes: dict[str, object]) -> None:
    with pytest.raises(InvalidDataError):
        await store.token_add(msgspec.structs.replace(token("a"), **changes))
    assert await store.token_list() == ()
