"""Whatever one format lets in comes out of every reader, and in every format, as it was."""

from typing import Any

import anyio
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.client.test_values import ODD, PLAIN
from tests.fakes import Desk, built_in_handlers, starter_files

from remit.faces.zmq.frames import CODECS, JSON, MSGPACK, Codec, encode_answer
from remit.kernel.dispatch.call import Call
from remit.model.principal import OPERATOR, Agent, AgentSpec
from remit_client.wire import Answer

HANDLERS = built_in_handlers()
LIMIT = 1 << 20


async def through(desk: Desk, codec: Codec, event: str, data: Any) -> list[dict[str, Any]]:
    """Ask in one format; the answer as it is read in each of them."""
    body = codec.encode({"id": 1, "event": event, "data": data})
    outcome = desk.dispatcher.submit(Call(OPERATOR, codec.request(body), codec.format))
    answer = outcome if isinstance(outcome, Answer) else await outcome.run()
    written = [encode_answer(one, answer, limit=LIMIT) for one in (MSGPACK, JSON)]
    return [msgspec.msgpack.decode(written[0]), msgspec.json.decode(written[1])]


async def opened() -> Desk:
    desk = Desk(HANDLERS, starter_files())
    desk.authority.fleet.add(Agent(id="bob", spec=AgentSpec(profile="communicator")))
    return desk


async def every_reader_gets(desk: Desk, value: Any) -> None:
    for codec in CODECS.values():
        shown = await through(desk, codec, "state:get", {"key": "a"})
        assert [one["data"]["value"] for one in shown] == [value, value]
        for event in ("state:list", "audit:query", "review:list"):
            for one in await through(desk, codec, event, {}):
                assert one["ok"], one
    mails = await desk.store.mail_take("bob", now=0.0)
    assert [msgspec.json.decode(mail.message) for mail in mails] == [value]


@given(PLAIN, st.sampled_from(sorted(CODECS)))
@settings(max_examples=25, deadline=None)
def test_a_value_that_was_let_in_is_read_by_everybody(value: Any, version: bytes) -> None:
    async def check() -> None:
        desk, codec = await opened(), CODECS[version]
        for event, data in (
            ("state:set", {"key": "a", "value": value}),
            ("agent:send_message", {"agent_id": "bob", "message": value}),
            ("message:publish", {"channel": "a", "data": value}),
        ):
            for answer in await through(desk, codec, event, data):
                assert answer["ok"], answer
        await every_reader_gets(desk, value)

    anyio.run(check)


@given(st.lists(PLAIN, max_size=2), ODD, st.sampled_from(sorted(CODECS)))
@settings(max_examples=25, deadline=None)
def test_a_value_is_refused_or_it_was_another_one(
    beside: list[Any], odd: Any, version: bytes
) -> None:
    """What a format writes otherwise (a number as a key, say) arrives as what it wrote."""

    async def check() -> None:
        desk, codec = await opened(), CODECS[version]
        try:
            codec.encode(odd)
        except (TypeError, ValueError, OverflowError):
            return
        data = {"key": "a", "value": [*beside, odd]}
        for answer in await through(desk, codec, "state:set", data):
            if not answer["ok"]:
                assert answer["error"]["code"] == "invalid_data"
                assert answer["error"]["details"]["path"].startswith("$")
        for event in ("state:list", "audit:query"):
            for answer in await through(desk, codec, event, {}):
                assert answer["ok"], answer

    anyio.run(check)
