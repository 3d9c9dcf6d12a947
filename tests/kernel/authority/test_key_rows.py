"""What a store promises of the keys of clients."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.rows import NOW, public_key

from remit.app.store import Store
from remit.errors import ConflictError, InvalidDataError, NotFoundError


async def test_a_registered_key_is_found_by_its_name(store: Store) -> None:
    added = await store.key_add("reviewer-1", public_key(1), "reviewer")
    assert await store.key_get("reviewer-1") == added
    assert added.is_living
    assert (added.profile, added.created_at) == ("reviewer", NOW)


async def test_a_living_name_is_not_given_twice(store: Store) -> None:
    await store.key_add("a", public_key(1), "p")
    with pytest.raises(ConflictError):
        await store.key_add("a", public_key(2), "p")


async def test_a_revoked_key_is_gone_but_not_forgotten(store: Store) -> None:
    await store.key_add("a", public_key(1), "p")
    revoked = await store.key_revoke("a")
    assert revoked.revoked_at == NOW
    assert await store.key_get("a") is None
    assert await store.key_list() == ()
    assert await store.key_list(include_revoked=True) == (revoked,)


async def test_a_revoked_name_can_be_given_to_a_new_public_key(store: Store) -> None:
    await store.key_add("a", public_key(1), "p")
    old = await store.key_revoke("a")
    new = await store.key_add("a", public_key(2), "q")
    assert await store.key_get("a") == new
    assert await store.key_list(include_revoked=True) == (old, new)


async def test_a_revoked_public_key_never_comes_back(store: Store) -> None:
    await store.key_add("a", public_key(1), "p")
    await store.key_revoke("a")
    with pytest.raises(ConflictError):
        await store.key_add("b", public_key(1), "p")


async def test_keys_are_listed_by_name(store: Store) -> None:
    for number, name in enumerate(["c", "a", "b"]):
        await store.key_add(name, public_key(number), "p")
    assert [key.name for key in await store.key_list()] == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["nobody", "revoked"])
async def test_revoking_what_does_not_live_is_not_found(store: Store, name: str) -> None:
    await store.key_add("revoked", public_key(1), "p")
    await store.key_revoke("revoked")
    with pytest.raises(NotFoundError):
        await store.key_revoke(name)


async def test_no_client_key_can_take_the_operators_name(store: Store) -> None:
    with pytest.raises(ConflictError):
        await store.key_add("operator", public_key(1), "p")


@pytest.mark.parametrize("name", ["", " a", "a\n", "a\0", "x" * 129, "\ud800"], ids=ascii)
async def test_an_impossible_name_is_refused(store: Store, name: str) -> None:
    with pytest.raises(InvalidDataError):
        await store.key_add(name, public_key(1), "p")


@pytest.mark.parametrize("text", ["", "0" * 39, "0" * 41, "0" * 39 + " ", "0" * 40 + "\n"])
async def test_what_is_no_public_key_is_refused(store: Store, text: str) -> None:
    with pytest.raises(InvalidDataError):
        await store.key_add("a", text, "p")


async def test_text_that_is_not_unicode_is_refused_wherever_it_stands(store: Store) -> None:
    asks: list[Callable[[], Any]] = [
        lambda: store.key_get("\ud800"),
        lambda: store.key_revoke("\ud800"),
        lambda: store.key_add("a", public_key(1), "\ud800"),
    ]
    for ask in asks:
        with pytest.raises(InvalidDataError):
            await ask()
