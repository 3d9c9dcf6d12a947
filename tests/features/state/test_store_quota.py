"""What a store promises of how much of the shared state somebody may have."""

import sqlite3
import tempfile
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import make_store
from tests.stores import SqliteStore

from remit.app.store import Store
from remit.errors import LimitError, StoreError
from remit.features.state.store import StateQuota, StateRows
from remit.kernel.store.database import Database

TWO, THREE = StateQuota(keys=2), StateQuota(keys=3)


async def refused(store: Store, key: str, by: str, quota: StateQuota, value: object = 1) -> str:
    with pytest.raises(LimitError) as caught:
        await store.state_set(key, value, by, quota=quota)
    assert caught.value.hint
    return str(caught.value.details["limit"])


async def test_a_key_too_many_is_refused_and_nothing_of_it_kept(store: Store) -> None:
    for number in range(3):
        await store.state_set(f"k{number}", number, "ann", quota=THREE)
    assert await refused(store, "k3", "ann", THREE) == "max_state_keys"
    assert await store.state_get("k3") is None
    await store.state_set("k0", "again", "ann", quota=THREE)
    await store.state_set("k3", 1, "bob", quota=THREE)
    await store.state_delete("k1")
    await store.state_set("k4", 1, "ann", quota=THREE)


async def test_bytes_are_those_of_keys_and_values(store: Store) -> None:
    quota = StateQuota(bytes=20)
    await store.state_set("ü", "x" * 16, "ann", quota=quota)  # two bytes of key, two quotes
    assert await refused(store, "b", "ann", quota) == "max_state_bytes"
    assert await refused(store, "ü", "ann", quota, "x" * 17) == "max_state_bytes"
    await store.state_set("ü", "x" * 14, "ann", quota=quota)
    await store.state_set("b", 1, "ann", quota=quota)


async def test_who_writes_a_key_has_it(store: Store) -> None:
    for number in range(3):
        await store.state_set(f"k{number}", number, "ann", quota=THREE)
    await store.state_set("k0", 1, "bob", quota=THREE)
    await store.state_set("k3", 1, "ann", quota=THREE)
    assert await refused(store, "k0", "ann", THREE) == "max_state_keys"
    entry = await store.state_get("k0")
    assert entry is not None
    assert entry.updated_by == "bob"


async def test_a_limit_that_was_lowered_takes_less_and_never_more(store: Store) -> None:
    for number in range(3):
        await store.state_set(f"k{number}", "long" * 10, "ann")
    lower = StateQuota(keys=1, bytes=10)
    await store.state_set("k0", "short", "ann", quota=lower)
    assert await refused(store, "k0", "ann", lower, "long" * 10) == "max_state_bytes"
    assert await refused(store, "k9", "ann", lower, "") == "max_state_keys"
    await store.state_delete("k0")


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["set", "delete"]),
        st.sampled_from(["a", "b", "ü", "c"]),
        st.sampled_from(["ann", "bob"]),
        st.text("xy", max_size=6),
    ),
    max_size=30,
)


def allowed(kept: dict[str, tuple[str, str]], key: str, by: str, value: str, *most: int) -> bool:
    """The rule by adding everything up: no more than the limit, or not more than before."""
    now = [_usage(state, by) for state in (kept, kept | {key: (by, value)})]
    return all(after <= max(limit, before) for before, after, limit in zip(*now, most, strict=True))


def _usage(kept: dict[str, tuple[str, str]], by: str) -> tuple[int, int]:
    sizes = [len(k.encode()) + len(text) + 2 for k, (who, text) in kept.items() if who == by]
    return len(sizes), sum(sizes)


@given(steps=STEPS, keys=st.integers(0, 4), size=st.integers(0, 40))
async def test_what_a_store_counts_along_is_what_adding_up_gives(
    steps: list[tuple[str, str, str, str]], keys: int, size: int
) -> None:
    kept: dict[str, tuple[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with make_store(folder) as store:
            for what, key, by, value in steps:
                if what == "delete":
                    assert await store.state_delete(key) == (kept.pop(key, None) is not None)
                elif allowed(kept, key, by, value, keys, size):
                    await store.state_set(key, value, by, quota=StateQuota(keys, size))
                    kept[key] = (by, value)
                else:
                    await refused(store, key, by, StateQuota(keys, size), value)


async def test_a_restart_remembers_who_has_what(tmp_path: Path) -> None:
    path = str(tmp_path / "remit.db")
    async with SqliteStore(path) as store:
        for key in ("a", "b"):
            await store.state_set(key, 1, "ann")
    async with SqliteStore(path) as store:
        with pytest.raises(LimitError):
            await store.state_set("c", 1, "ann", quota=TWO)
        await store.state_delete("a")
        await store.state_set("c", 1, "ann", quota=TWO)


async def test_what_a_lost_transaction_wrote_counts_for_nothing(tmp_path: Path) -> None:
    def crash(connection: sqlite3.Connection) -> None:
        raise SystemExit

    async with SqliteStore(str(tmp_path / "remit.db")) as store:
        await store.state_set("a", 1, "ann", quota=TWO)

        async def lost(key: str) -> None:
            with pytest.raises(StoreError):
                await store.state_set(key, 1, "ann", quota=StateQuota(keys=9))

        async def fail() -> None:
            with pytest.raises(StoreError):
                await store.database.write(crash)

        async with anyio.create_task_group() as tasks:  # they wait together, so they are one batch
            for key in ("b", "c", "d"):
                tasks.start_soon(lost, key)
            tasks.start_soon(fail)
        await store.state_set("e", 1, "ann", quota=TWO)
        with pytest.raises(LimitError):
            await store.state_set("f", 1, "ann", quota=TWO)


async def test_whoever_looks_at_a_database_remembers_the_same(tmp_path: Path) -> None:
    async with Database(str(tmp_path / "remit.db")) as database:
        first, second = StateRows(database), StateRows(database)
        await first.state_set("a", 1, "ann", quota=TWO)
        await second.state_set("b", 1, "ann", quota=TWO)
        with pytest.raises(LimitError):
            await first.state_set("c", 1, "ann", quota=TWO)
        await second.state_delete("a")
        await first.state_set("c", 1, "ann", quota=TWO)
