"""Shared state over the real socket."""

from collections.abc import AsyncIterator

import anyio
import pytest
from tests.acceptance.site import Daemon, Site

import remit_client
from remit_client import Client, NotFound


@pytest.fixture
async def remit(daemon: Daemon) -> AsyncIterator[Client]:
    with anyio.fail_after(20):
        async with remit_client.connect(home=daemon.home) as client:
            yield client


async def test_a_value_is_read_as_it_was_written(remit: Client) -> None:
    value = {"plan": ["a", 1, 2.5, None, True], "where": {"deep": "ü"}}
    written = await remit.call("state:set", {"key": "team/plan", "value": value})
    read = await remit.call("state:get", {"key": "team/plan"})
    assert read["value"] == value
    assert read["version"] == written["version"]
    assert read["updated_by"] == "operator"


async def test_a_deleted_value_is_not_found_and_the_hint_says_where_to_look(remit: Client) -> None:
    await remit.call("state:set", {"key": "gone", "value": 1})
    assert await remit.call("state:delete", {"key": "gone"}) == {"key": "gone", "deleted": True}
    assert await remit.call("state:delete", {"key": "gone"}) == {"key": "gone", "deleted": False}
    with pytest.raises(NotFound) as caught:
        await remit.call("state:get", {"key": "gone"})
    assert "state:list" in caught.value.hint


async def test_a_list_is_paged_by_its_cursor_and_counts_what_the_prefix_covers(
    remit: Client,
) -> None:
    for number in range(5):
        await remit.call("state:set", {"key": f"page/{number}", "value": number})
    await remit.call("state:set", {"key": "pages", "value": "another prefix"})
    first = await remit.call("state:list", {"prefix": "page/", "limit": 3})
    rest = await remit.call("state:list", {"prefix": "page/", "limit": 3, "after": first["next"]})
    assert [item["key"] for item in first["items"]] == ["page/0", "page/1", "page/2"]
    assert [item["value"] for item in rest["items"]] == [3, 4]
    assert (first["total"], rest["next"]) == (5, None)


async def test_a_write_that_expects_another_version_is_a_conflict(remit: Client) -> None:
    await remit.call("state:set", {"key": "versioned", "value": 1, "expect_version": 0})
    with pytest.raises(remit_client.Conflict):
        await remit.call("state:set", {"key": "versioned", "value": 2, "expect_version": 0})
    assert (await remit.call("state:get", {"key": "versioned"}))["value"] == 1


def test_what_was_acknowledged_survives_a_kill(site: Site) -> None:
    first = site.start()
    with first.operator() as remit:
        remit.call("state:set", {"key": "kept", "value": {"n": 1}})
    first.kill()
    with site.serving() as second, second.operator() as remit:
        assert remit.call("state:get", {"key": "kept"})["value"] == {"n": 1}
