"""What a store promises of mail."""

import anyio
import pytest
from tests.rows import NOW, agent

from remit.app.store import Store
from remit.errors import InvalidDataError, LimitError
from remit.features.messages.mailbox import Mail

LATER = NOW + 10


async def send(store: Store, number: int, *, to: str = "a", expires_at: float = LATER) -> int:
    return await store.mail_add(to, b"%d" % number, "sender", expires_at, limit=1000)


async def take(store: Store, to: str = "a", *, now: float = NOW) -> list[int]:
    return [int(mail.message) for mail in await store.mail_take(to, now=now)]


async def test_mail_is_given_out_once_oldest_first(store: Store) -> None:
    for number in range(3):
        await send(store, number)
    assert await take(store) == [0, 1, 2]
    assert await take(store) == []


async def test_a_message_tells_who_sent_it_and_when(store: Store) -> None:
    number = await send(store, 7)
    assert await store.mail_take("a", now=NOW) == (Mail(number, "a", "sender", b"7", NOW, LATER),)


async def test_nobody_gets_the_mail_of_another(store: Store) -> None:
    await send(store, 1, to="a")
    await send(store, 2, to="b")
    assert await take(store, "b") == [2]
    assert await take(store, "a") == [1]


async def test_expired_mail_is_dropped_and_never_given_out(store: Store) -> None:
    await send(store, 1, expires_at=NOW + 1)
    await send(store, 2, expires_at=NOW + 2)
    assert await take(store, now=NOW + 1) == [2]
    assert await store.mail_expire(NOW + 100) == 0


async def test_expiring_drops_what_is_over_and_counts_it(store: Store) -> None:
    await send(store, 1, expires_at=NOW + 1)
    await send(store, 2, to="b", expires_at=NOW + 1)
    await send(store, 3, expires_at=NOW + 2)
    assert await store.mail_expire(NOW + 1) == 2
    assert await take(store) == [3]


async def test_a_full_mailbox_refuses_with_its_limit_and_a_retry_time(store: Store) -> None:
    await store.mail_add("a", b"1", "s", NOW + 5, limit=2)
    await store.mail_add("a", b"2", "s", NOW + 9, limit=2)
    with pytest.raises(LimitError) as caught:
        await store.mail_add("a", b"3", "s", LATER, limit=2)
    assert caught.value.details == {"limit": 2, "max_bytes": 2 << 20, "retry_after": 5.0}
    await store.mail_add("b", b"3", "s", LATER, limit=2)
    assert await store.mail_count("a") == 2


async def test_what_waits_for_one_agent_is_bounded_in_bytes(store: Store) -> None:
    await store.mail_add("a", b"12345", "s", LATER, limit=9, max_bytes=10)
    await store.mail_add("a", b"12345", "s", LATER, limit=9, max_bytes=10)
    with pytest.raises(LimitError):
        await store.mail_add("a", b"1", "s", LATER, limit=9, max_bytes=10)
    await store.mail_add("b", b"1234567890", "s", LATER, limit=9, max_bytes=10)
    with pytest.raises(LimitError):
        await store.mail_add("c", b"12345678901", "s", LATER, limit=9, max_bytes=10)


async def test_expired_mail_takes_no_place_in_the_mailbox(store: Store) -> None:
    await store.mail_add("a", b"1", "s", NOW, limit=1)
    assert await store.mail_count("a") == 0
    await store.mail_add("a", b"2", "s", LATER, limit=1)


async def test_a_large_mailbox_is_given_out_in_parts_without_a_gap(store: Store) -> None:
    for number in range(7):
        await send(store, number)
    parts = [await store.mail_take("a", now=NOW, limit=3) for _ in range(4)]
    assert [len(part) for part in parts] == [3, 3, 1, 0]
    assert [int(mail.message) for part in parts for mail in part] == list(range(7))


async def test_large_messages_make_smaller_parts_but_never_none(store: Store) -> None:
    for _ in range(2):
        await store.mail_add("a", b'"%b"' % (b"x" * 100), "s", LATER, limit=9)
    assert len(await store.mail_take("a", now=NOW, max_bytes=10)) == 1
    assert len(await store.mail_take("a", now=NOW, max_bytes=10)) == 1


async def test_readers_at_the_same_time_never_get_one_message_twice(store: Store) -> None:
    for number in range(50):
        await send(store, number)
    got: list[int] = []

    async def read() -> None:
        while part := await store.mail_take("a", now=NOW, limit=2):
            got.extend(int(mail.message) for mail in part)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(read)
    assert sorted(got) == list(range(50))


async def test_the_mail_of_an_agent_goes_with_it(store: Store) -> None:
    await store.agent_add(agent("a", 1))
    await send(store, 1)
    await send(store, 2, to="b")
    await store.agent_remove(["a"])
    assert await store.mail_count("a") == 0
    assert await store.mail_count("b") == 1


async def test_a_new_agent_never_reads_mail_for_the_one_before_it(store: Store) -> None:
    await send(store, 1)
    await store.agent_add(agent("a", 1))
    assert await take(store) == []


@pytest.mark.parametrize("message", [b"", b"{", b"\xff", b"[" * 10_000])
async def test_a_message_that_is_not_json_is_refused(store: Store, message: bytes) -> None:
    with pytest.raises(InvalidDataError):
        await store.mail_add("a", message, "s", LATER, limit=1)


async def test_a_message_that_expires_never_or_nowhen_is_refused(store: Store) -> None:
    for moment in (float("nan"), float("inf")):
        with pytest.raises(InvalidDataError):
            await store.mail_add("a", b"1", "s", moment, limit=1)
