"""What a store promises of reviews and blobs."""

from contextlib import suppress

import anyio
import pytest
from tests.rows import NOW, review

from remit.app.store import Store
from remit.errors import ConflictError, InvalidDataError, NotFoundError, TooLargeError

DAY = 86_400.0


async def test_a_review_is_read_back_as_it_was_asked(store: Store) -> None:
    asked = review("r1", payload=b'{"event":"agent:spawn"}', expires_at=NOW + DAY)
    assert await store.review_add(asked) == asked
    assert await store.review_get("r1") == asked
    assert await store.review_get("other") is None


async def test_an_id_is_asked_about_once(store: Store) -> None:
    await store.review_add(review("r1"))
    with pytest.raises(ConflictError):
        await store.review_add(review("r1", subject="another"))
    found = await store.review_get("r1")
    assert found == review("r1")


async def test_a_decision_is_kept_with_who_when_and_why(store: Store) -> None:
    await store.review_add(review("r1"))
    decided = await store.review_decide("r1", "approved", "operator", "looks fine", NOW + 1)
    assert decided == review(
        "r1", status="approved", decided_by="operator", decided_at=NOW + 1, note="looks fine"
    )
    assert await store.review_get("r1") == decided


async def test_of_many_decisions_at_once_exactly_one_counts(store: Store) -> None:
    await store.review_add(review("r1"))
    won: list[str] = []

    async def decide(name: str) -> None:
        with suppress(ConflictError):
            await store.review_decide("r1", "rejected", name, "", NOW)
            won.append(name)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(decide, f"person-{number}")
    found = await store.review_get("r1")
    assert found is not None
    assert won == [found.decided_by]


async def test_what_has_expired_can_never_be_approved(store: Store) -> None:
    await store.review_add(review("r1", expires_at=NOW))
    with pytest.raises(ConflictError) as caught:
        await store.review_decide("r1", "approved", "operator", "", NOW)
    assert caught.value.details["status"] == "expired"
    assert (await store.review_decide("r1", "expired", "", "", NOW)).status == "expired"


async def test_deciding_what_was_never_asked_is_not_found(store: Store) -> None:
    with pytest.raises(NotFoundError):
        await store.review_decide("r1", "approved", "operator", "", NOW)


async def test_pending_is_no_decision(store: Store) -> None:
    await store.review_add(review("r1"))
    with pytest.raises(InvalidDataError):
        await store.review_decide("r1", "pending", "operator", "", NOW)


async def test_reviews_are_listed_by_status_and_kind_oldest_first(store: Store) -> None:
    for name, kind in (("z", "approval"), ("b", "card"), ("a", "approval")):
        await store.review_add(review(name, kind=kind))
    await store.review_decide("z", "approved", "operator", "", NOW)
    assert [r.id for r in (await store.review_list()).items] == ["z", "b", "a"]
    assert [r.id for r in (await store.review_list(status="pending")).items] == ["b", "a"]
    page = await store.review_list(status="pending", kind="approval")
    assert [r.id for r in page.items] == ["a"]


async def test_pages_of_reviews_walk_through_each_exactly_once(store: Store) -> None:
    for number in range(5):
        await store.review_add(review(f"r{9 - number}"))
    first = await store.review_list(limit=2)
    assert first.next is not None
    second = await store.review_list(limit=2, after=first.next)
    assert second.next is not None
    third = await store.review_list(limit=2, after=second.next)
    seen = [r.id for page in (first, second, third) for r in page.items]
    assert (seen, third.next) == (["r9", "r8", "r7", "r6", "r5"], None)


async def test_going_on_behind_an_unknown_review_is_not_found(store: Store) -> None:
    with pytest.raises(NotFoundError):
        await store.review_list(after="r1")


@pytest.mark.parametrize(
    "changes", [{"payload": b"{"}, {"status": "maybe"}, {"id": ""}, {"subject": "\ud800"}], ids=str
)
async def test_a_review_that_nobody_could_decide_is_refused(
    store: Store, changes: dict[str, object]
) -> None:
    with pytest.raises(InvalidDataError):
        await store.review_add(review("r1", **changes))


async def test_a_blob_is_replaced_as_a_whole(store: Store) -> None:
    assert await store.blob_get("config") is None
    await store.blob_put("config", b"a long first one")
    await store.blob_put("config", b"\0\xff")
    assert await store.blob_get("config") == b"\0\xff"


async def test_a_blob_holds_up_to_16_mebibytes(store: Store) -> None:
    with pytest.raises(TooLargeError):
        await store.blob_put("config", bytes(16 * 1024 * 1024 + 1))
    await store.blob_put("config", bytes(16 * 1024 * 1024))


async def test_a_blob_needs_a_possible_name(store: Store) -> None:
    with pytest.raises(InvalidDataError):
        await store.blob_put("", b"")
