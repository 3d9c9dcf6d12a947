"""The bus over the real socket, as clients use it."""

import anyio
import pytest
from tests.acceptance.site import Daemon, Site, eventually

import remit_client
import remit_client.sync
from remit_client.keys import Key


def test_a_message_is_heard_by_a_blocking_client(daemon: Daemon) -> None:
    with (
        daemon.client("ann", "communicator") as ann,
        daemon.client("bob", "communicator") as bob,
        bob.subscribe("message:*") as events,
    ):
        for number in range(3):
            said = ann.call("message:publish", {"channel": "team", "data": number})
            assert said == {"delivered": 1}
        heard = [events.wait(10) for _ in range(3)]
    assert [push and (push.seq, push.event, push.origin, push.data) for push in heard] == [
        (number + 1, "message:publish", "ann", {"channel": "team", "data": number})
        for number in range(3)
    ]


async def test_a_message_is_heard_by_an_async_client_and_not_after_its_block(
    daemon: Daemon,
) -> None:
    keys = [daemon.new_key(name, "communicator") for name in ("cleo", "dan")]
    with anyio.fail_after(20):
        async with (
            remit_client.connect(home=daemon.home, key=keys[0]) as cleo,
            remit_client.connect(home=daemon.home, key=keys[1]) as dan,
        ):
            async with dan.subscribe("message:*") as events:
                await cleo.call("message:publish", {"channel": "team", "data": "hi"})
                async for push in events:
                    assert (push.origin, push.data["data"]) == ("cleo", "hi")
                    break
            assert await dan.call("message:subscriptions") == {"channels": [], "patterns": []}
            said = await cleo.call("message:publish", {"channel": "team", "data": "ho"})
            assert said == {"delivered": 0}


def test_what_a_client_may_not_see_is_not_pushed_whatever_it_asks_for(daemon: Daemon) -> None:
    with (
        daemon.client("eve", "minimal") as eve,
        daemon.client("fay", "executor") as fay,
        eve.subscribe("*", "message:*", "state:set", "audit:entry") as events,
        fay.subscribe("state:*") as changes,
        daemon.operator() as operator,
    ):
        operator.call("state:set", {"key": "plan", "value": "secret"})
        operator.call("message:publish", {"channel": "team", "data": 1})
        seen = changes.wait(10)
        assert seen is not None
        assert seen.data == {"key": "plan", "version": 1, "by": "operator"}
        eve.call("system:health")  # whatever was pushed has come before this answer
        assert events.wait(0) is None


def test_the_operator_watches_what_is_decided(daemon: Daemon) -> None:
    with (
        daemon.operator() as operator,
        operator.subscribe("audit:entry") as entries,
        daemon.client("gus", "minimal") as gus,
    ):
        with pytest.raises(remit_client.Denied):
            gus.call("state:set", {"key": "a", "value": 1})
        while (push := entries.wait(10)) is not None and push.data["outcome"] != "denied":
            pass
    assert push is not None
    assert (push.data["principal"], push.data["event"]) == ("gus", "state:set")


def test_a_client_that_lost_its_daemon_hears_again_without_asking_again(site: Site) -> None:
    first = site.start()
    key = first.new_key("hal", "communicator")
    with (
        remit_client.sync.connect(home=site.home, key=key) as hal,
        hal.subscribe("message:*") as events,
    ):
        hal.call("message:subscribe", {"channels": ["team"]})
        first.kill()
        with site.serving() as second:
            # Patterns come back by themselves; channels are the caller's own business.
            assert subscriptions_of(hal) == {"channels": [], "patterns": ["message:*"]}
            with second.operator() as operator:
                operator.call("message:publish", {"channel": "team", "data": "back"})
            push = events.wait(10)
        assert push is not None
        assert (push.seq, push.data["data"], events.interruptions) == (1, "back", 1)


def subscriptions_of(client: remit_client.sync.Client) -> object:
    """What the client is subscribed to once it is back."""

    def look() -> dict[str, list[str]]:
        try:
            return dict(client.call("message:subscriptions"))
        except remit_client.RemitError:
            return {}

    return eventually(look, lambda seen: bool(seen and seen["patterns"]))


async def test_an_async_client_hears_again_after_a_restart(site: Site) -> None:
    first = site.start()
    second: Daemon | None = None
    key: Key = first.new_key("ida", "communicator")
    try:
        with anyio.fail_after(30):
            async with (
                remit_client.connect(home=site.home, key=key) as ida,
                ida.subscribe("message:*") as events,
            ):
                first.kill()
                second = await anyio.to_thread.run_sync(site.start)
                while not await subscribed(ida):  # noqa: ASYNC110 - another process has no event
                    await anyio.sleep(0.01)
                await ida.call("message:publish", {"channel": "team", "data": "back"})
                assert (await anext(events)).data["data"] == "back"
    finally:
        first.kill()
        if second is not None:
            second.kill()


async def subscribed(client: remit_client.Client) -> bool:
    try:
        return bool((await client.call("message:subscriptions"))["patterns"])
    except remit_client.RemitError:
        return False
