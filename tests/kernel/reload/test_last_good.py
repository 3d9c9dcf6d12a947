"""What is kept for the next start comes back as it was, and what is damaged counts as absent."""

import pytest
from hypothesis import given
from structlog.testing import capture_logs
from tests.policy.catalogues import World, compile_world, worlds
from tests.stores import TemporaryStore

from remit.config.definitions.files import Files
from remit.errors import StoreError
from remit.kernel.authority.fleet import NOTHING
from remit.kernel.authority.revision import Revision
from remit.kernel.authority.standing import LAST_GOOD
from remit.kernel.reload.last_good import GRANTS_BLOB, keep, recall
from remit.policy.catalogue import Catalogue

FILES = Files("capabilities.yaml", ["a.yaml"], {"capabilities.yaml": b"x", "a.yaml": b"\xff"})
PARTS = [LAST_GOOD, GRANTS_BLOB]


def revision_of(catalogue: Catalogue) -> Revision:
    return Revision(catalogue, FILES, NOTHING)


@pytest.fixture
def store() -> TemporaryStore:
    return TemporaryStore()


@given(world=worlds())
async def test_every_grant_comes_back_as_it_was(world: World) -> None:
    store, catalogue = TemporaryStore(), compile_world(world)
    assert await keep(store, revision_of(catalogue))
    kept = await recall(store)
    assert kept.names == tuple(catalogue.universe.names)
    assert kept.grants is not None
    assert kept.grants.keys() == catalogue.grants.keys()
    for name, grant in catalogue.grants.items():
        found = kept.grants[name]
        for field in (
            "bits",
            "events",
            "claude_tools",
            "limits",
            "approval_required",
            "denied_events",
            "denied_tools",
            "pending_review",
            "exposed",
            "exposure",
            "pinned",
            "max_effect",
            "trusted",
        ):
            assert getattr(found, field) == getattr(grant, field), field


@given(world=worlds())
async def test_what_came_back_is_kept_again_as_it_was(world: World) -> None:
    store, catalogue = TemporaryStore(), compile_world(world)
    await keep(store, revision_of(catalogue))
    before = [await store.blob_get(part) for part in PARTS]
    await keep(store, revision_of(catalogue))
    assert [await store.blob_get(part) for part in PARTS] == before


@pytest.fixture
def revision() -> Revision:
    world = World(units=(), roles=(), holders=(None,) * 9)
    return revision_of(compile_world(world))


async def test_files_come_back_byte_for_byte_and_marked_as_kept(
    store: TemporaryStore, revision: Revision
) -> None:
    await keep(store, revision)
    found = (await recall(store)).files
    assert found is not None
    assert found.contents == FILES.contents
    assert found.kept
    assert not FILES.kept


async def test_a_store_without_a_past_has_none(store: TemporaryStore) -> None:
    kept = await recall(store)
    assert (kept.revision, kept.files, kept.names, kept.grants) == (0, None, (), None)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("damage", [b"", b"\xc1", b"\x92\x01", b"\xa3\xff\xff\xff", b"\x91" * 5000])
async def test_one_damaged_part_does_not_take_the_other_along(
    store: TemporaryStore, revision: Revision, part: str, damage: bytes
) -> None:
    await keep(store, revision)
    await store.blob_put(part, damage)
    with capture_logs() as logs:
        kept = await recall(store)
    assert (kept.files is None) == (part == LAST_GOOD)
    assert (kept.grants is None) == (part == GRANTS_BLOB)
    assert kept.revision == revision.catalogue.revision
    assert [(one["event"], one["part"]) for one in logs] == [("kept_config_damaged", part)]


async def test_a_disk_that_is_full_keeps_nothing_from_being_in_force(
    store: TemporaryStore, revision: Revision
) -> None:
    await keep(store, revision)
    store.database.refuses = True
    with capture_logs() as logs:
        assert not await keep(store, revision)
    assert [one["part"] for one in logs] == PARTS
    assert all(one["event"] == "config_not_kept" for one in logs)
    assert (await recall(store)).files is not None


async def test_a_store_that_cannot_be_read_is_an_error_and_no_empty_past(
    store: TemporaryStore, revision: Revision
) -> None:
    class Broken(TemporaryStore):
        async def blob_get(self, name: str) -> bytes | None:
            raise StoreError(f"{name} cannot be read")

    with pytest.raises(StoreError):
        await recall(Broken())
