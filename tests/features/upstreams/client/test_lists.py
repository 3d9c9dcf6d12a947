"""Which tools of an upstream server are taken over, and when its list is asked for again."""

from pathlib import Path

import anyio
import pytest
from tests.features.upstreams.client.clients import faulty, process, running

from remit.errors import UnavailableError

pytestmark = pytest.mark.anyio


async def test_odd_tools_are_left_out_with_a_reason_and_the_others_stay() -> None:
    async with running(faulty("odd-tools")) as one:
        listing = await one.client.refresh()
    assert [tool.name for tool in listing.tools] == ["good", "also_good"]
    assert listing.tools[0].title == "Good"
    assert listing.tools[0].annotations == {"readOnlyHint": True}
    reasons = {left.name: left.reason for left in listing.reasons}
    assert listing.left_out == len(listing.reasons) == 15
    assert reasons["twice"] == "two tools have this name"
    assert reasons["no_schema"] == "it has no input schema"
    assert reasons["text_schema"] == "its input schema is no schema"
    assert reasons["wrong_type"] == "its input schema is not one of an object"
    assert reasons["broken"].startswith("its input schema cannot be used")
    assert "evil.example" in reasons["outside"]
    assert "unfold" in reasons["doubling"]
    assert reasons["bad_output"].startswith("its output schema cannot be used")
    assert "32,768" in reasons["novel"]
    assert "x-mcp-header" in reasons["header"]


async def test_10_000_tools_are_cut_and_counted() -> None:
    async with running(faulty("many-tools")) as one:
        listing = await one.client.refresh()
    assert len(listing.tools) == 2_000
    assert listing.left_out == 8_000
    assert listing.tools[-1].name == "tool_1999"
    assert "8000 tools are more than the 2000" in listing.reasons[0].reason


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("large-page", "it gave no list of tools: the answer is too large"),
        ("dies-listing", "it exited with code 4: cannot list"),
    ],
)
async def test_a_server_without_a_list_is_not_available(fault: str, reason: str) -> None:
    async with running(faulty(fault)) as one:
        with pytest.raises(UnavailableError) as caught:
            await one.client.refresh()
        assert caught.value.details["reason"] == reason


async def test_a_list_that_is_refused_later_harms_no_call() -> None:
    async with running(faulty("lists-once")) as one:
        assert await one.text("one") == "done"
        with pytest.raises(UnavailableError, match="it gave no list of tools: busy"):
            await one.client.refresh()
        assert await one.text("one") == "done"
        assert len(one.listings) == 1


async def test_pages_without_end_are_bounded() -> None:
    async with running(faulty("endless-pages")) as one:
        listing = await one.client.refresh()
    assert len(listing.tools) == 200
    assert listing.reasons[0].reason == "its list has more than 200 pages"


async def test_pages_that_go_round_are_noticed() -> None:
    async with running(faulty("circling-pages")) as one:
        listing = await one.client.refresh()
    assert listing.reasons[0].reason == "its list goes round in a circle"
    assert listing.left_out == 2


@pytest.mark.parametrize(
    ("fault", "protocol"), [("changes", "2025-11-25"), ("changes-modern", "2026-07-28")]
)
async def test_a_change_is_told_in_both_eras(fault: str, protocol: str) -> None:
    async with running(faulty(fault)) as one:
        listing = await one.client.refresh()
        assert (listing.protocol, listing.server_name, listing.server_version) == (
            protocol,
            "raw",
            "1.2",
        )
        before = len(one.listings)
        await one.text("one")
        await one.listed(lambda listing: len(listing.tools) == 2)
        await one.text("one")
        await one.listed(lambda listing: len(listing.tools) == 3)
        assert len(one.listings) == before + 2  # ten notices each, one list


async def test_a_flood_of_changes_is_not_followed() -> None:
    async with running(faulty("floods")) as one:
        listing = await one.client.refresh()
        await one.text("flood")
        lists = said = 0
        with anyio.fail_after(20):
            while said < 1_000:
                lists, said = map(int, (await one.text("counts")).split())
        assert lists <= 10
        assert await one.listed() == listing
        assert one.client.health.state == "ready"


async def test_a_refresh_is_answered_after_it_was_told() -> None:
    async with running(faulty("changes")) as one:
        first = await one.client.refresh()
        await one.text("one")
        second = await one.client.refresh()
        assert one.listings[-1] == second
        assert len(second.tools) == len(first.tools) + 1


async def test_a_refresh_of_a_server_that_does_not_start_says_why() -> None:
    async with running(faulty("exits")) as one:
        with pytest.raises(UnavailableError, match="it exited with code 2"):
            await one.client.refresh()


async def test_every_dumped_server_is_taken_over_whole(shared_data: Path) -> None:
    taken = 0
    for dump in sorted((shared_data / "mcp_tools").glob("*.json")):
        async with running(process("from_dump", str(dump))) as one:
            listing = await one.client.refresh()
            assert listing.left_out == 0, (dump.name, listing.reasons)
            taken += len(listing.tools)
            outcome = await one.client.call(listing.tools[0].name, {"a": 1})
            assert '"arguments": {"a": 1}' in outcome.content[0]["text"]
    assert taken == 356
