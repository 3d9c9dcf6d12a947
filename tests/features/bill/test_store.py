"""What a store promises of bills."""

import pytest
from tests.rows import agent, public_key

from remit.app.store import Store
from remit.errors import InvalidDataError
from remit.kernel.dispatch.bills import BillBounds, BillDay, BillTurn

BOUNDS = BillBounds(first_day=0, first_turn=0, turns_of_one=3, rows=100)


def day(principal: str, number: int, kind: str = "lists", sent: int = 5) -> BillDay:
    return BillDay(principal, number, kind, 1, sent, 2 * sent)


def turn(principal: str, number: int, sent: int = 5) -> BillTurn:
    return BillTurn(principal, number, number / 2, sent, 2 * sent, {"lists": sent})


async def test_a_day_grows_and_others_stay_as_they_are(store: Store) -> None:
    await store.bill_add([day("ann", 1), day("ann", 2), day("bob", 1)], [], BOUNDS)
    await store.bill_add([day("ann", 1, sent=7), day("ann", 1, "cards", 1)], [], BOUNDS)
    assert await store.bill_days("ann", 0) == (
        BillDay("ann", 1, "cards", 1, 1, 2),
        BillDay("ann", 1, "lists", 2, 12, 24),
        BillDay("ann", 2, "lists", 1, 5, 10),
    )
    assert await store.bill_days("ann", 2) == (day("ann", 2),)
    assert await store.bill_days("nobody", 0) == ()


async def test_the_days_of_everybody_are_added_up_by_kind(store: Store) -> None:
    days = [day("bob", 1), day("ann", 2), day("ann", 3, sent=1), day("ann", 1, "cards")]
    await store.bill_add(days, [], BOUNDS)
    assert await store.bill_sums(1) == (
        BillDay("ann", 1, "cards", 1, 5, 10),
        BillDay("ann", 2, "lists", 2, 6, 12),
        BillDay("bob", 1, "lists", 1, 5, 10),
    )
    assert await store.bill_sums(3) == (day("ann", 3, sent=1),)


async def test_a_turn_is_put_again_as_it_grows_and_the_newest_come_first(store: Store) -> None:
    await store.bill_add([], [turn("ann", 1), turn("ann", 2), turn("bob", 9)], BOUNDS)
    await store.bill_add([], [turn("ann", 2, sent=8)], BOUNDS)
    assert await store.bill_turns("ann", 9) == (turn("ann", 2, sent=8), turn("ann", 1))
    assert await store.bill_turns("ann", 1) == (turn("ann", 2, sent=8),)


async def test_what_is_old_or_too_much_goes_oldest_first(store: Store) -> None:
    turns = [turn("ann", number) for number in range(1, 6)]
    await store.bill_add([day("ann", n) for n in range(1, 6)], turns, BOUNDS)
    assert [one.number for one in await store.bill_turns("ann", 9)] == [5, 4, 3]
    later = BillBounds(first_day=3, first_turn=4, turns_of_one=3, rows=100)
    await store.bill_add([], [], later)
    assert [one.day for one in await store.bill_days("ann", 0)] == [3, 4, 5]
    assert [one.number for one in await store.bill_turns("ann", 9)] == [5, 4]
    few = BillBounds(first_day=0, first_turn=0, turns_of_one=3, rows=2)
    await store.bill_add([day("bob", 4)], [turn("bob", 1), turn("bob", 9)], few)
    assert [(one.principal, one.day) for one in await store.bill_sums(0)] == [
        ("ann", 5),
        ("bob", 4),
    ]
    assert [one.number for one in await store.bill_turns("bob", 9)] == [9]
    assert [one.number for one in await store.bill_turns("ann", 9)] == [5]


async def test_a_bill_outlives_its_agent_and_a_newcomer_begins_anew(store: Store) -> None:
    await store.agent_add(agent("ann", 1))
    await store.key_add("bob", public_key(5), "p")
    await store.bill_add([day("ann", 1), day("bob", 1)], [turn("ann", 1), turn("bob", 1)], BOUNDS)
    await store.agent_remove(["ann"])
    await store.key_revoke("bob")
    assert len(await store.bill_sums(0)) == 2
    await store.agent_add(agent("ann", 2))
    await store.key_add("bob", public_key(6), "p")
    assert await store.bill_sums(0) == ()
    assert await store.bill_turns("ann", 9) == await store.bill_turns("bob", 9) == ()


async def test_an_impossible_principal_is_refused(store: Store) -> None:
    name = "\ud800"
    with pytest.raises(InvalidDataError):
        await store.bill_add([day(name, 1)], [], BOUNDS)
    with pytest.raises(InvalidDataError):
        await store.bill_turns(name, 1)
