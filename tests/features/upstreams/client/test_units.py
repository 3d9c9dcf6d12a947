"""The small parts that upstream servers are held off with."""

import math

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.features.upstreams.client.schema import Checker, takes_more_than, unusable
from remit.features.upstreams.client.state import ClientLimits, SecretMasks, Throttle
from remit.features.upstreams.client.supervisor import Backoff, HandshakeMode, RelistSchedule
from remit.features.upstreams.client.transport import LineSplitter


@given(st.lists(st.binary(max_size=40)), st.integers(1, 30), st.integers(1, 50))
def test_lines_are_the_same_however_they_come(parts: list[bytes], step: int, longest: int) -> None:
    whole = b"\n".join(part.replace(b"\n", b"") for part in parts) + b"\n"
    lines = LineSplitter(longest=longest)
    for at in range(0, len(whole), step):
        lines.feed(whole[at : at + step])
    taken = []
    while (line := lines.take()) is not None:
        taken.append((line.whole, line.start if line.whole else line.size))
    wanted = [line for line in whole.split(b"\n") if line.strip()]
    short = [line for line in wanted if len(line) <= longest]
    assert [line for is_whole, line in taken if is_whole] == short


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"text":"%s"}}', 7),
        (b'{"id": 7, "jsonrpc": "2.0", "result": "%s"}', 7),
        (b'{"result":{"id":1,"text":"%s"},"jsonrpc":"2.0","id":7}', 7),
        (b'{"result":"%s","id":"seven","jsonrpc":"2.0"}', "seven"),
        (b'{"result":{"text":"%s","id":1}}', None),
        (b'{"result":"%s \\"id\\":7}"}', None),
        (b"%s", None),
    ],
)
def test_the_request_of_a_line_that_is_too_long_is_found(line: bytes, asked: object) -> None:
    lines = LineSplitter(longest=1_000)
    lines.feed(line % (b"x" * 5_000) + b"\n")
    taken = lines.take()
    assert taken is not None
    assert not taken.whole
    assert len(taken.start) + len(taken.end) < 2_000
    assert taken.request() == asked


def test_a_line_is_not_kept_beyond_its_limit_while_it_comes() -> None:
    lines = LineSplitter(longest=1_000)
    for _ in range(100):
        lines.feed(b"x" * 65_536)
    assert len(lines._start) + len(lines._end) < 2_000


def test_a_secret_is_masked_however_json_writes_it() -> None:
    masks = SecretMasks(['pass"word\\1', "Bearer abcdef"])
    value = {"a": ['x pass"word\\1 y'], "abcdef": 1}
    assert masks.value(value, msgspec.json.encode(value)) == {"a": ["x *** y"], "***": 1}
    assert masks.text("Bearer token") == "Bearer token"


def test_pauses_double_up_to_a_bound_and_start_anew_after_a_good_run() -> None:
    pauses = Backoff(ClientLimits(first_pause=1, longest_pause=8, well_after=60))
    assert pauses.next(ran=5) == 0
    for longest in (2, 4, 8, 8, 8):
        assert longest / 2 <= pauses.next(ran=None) <= longest
    assert pauses.next(ran=5) > 0
    assert pauses.next(ran=61) == 0


@pytest.mark.anyio
async def test_whoever_writes_too_much_has_to_wait() -> None:
    pace = Throttle(100)
    with anyio.fail_after(5):
        for _ in range(100):
            await pace.spend()
    with anyio.move_on_after(0.2) as waited:
        await pace.spend()
    assert waited.cancelled_caught


@pytest.mark.anyio
async def test_a_server_that_cries_wolf_is_believed_less_quickly() -> None:
    patience = RelistSchedule(ClientLimits(relist_seconds=1))
    now = anyio.current_time()
    assert patience.due(None) == math.inf
    assert patience.due(now) < now + 0.2
    for _ in range(5):
        patience.asked()
        patience.found(changed=False)
    assert patience.due(now) > now + 3
    patience.found(changed=True)
    assert patience.due(now) < now + 1.5
    assert patience.due(now + 100) < now + 100.2


def test_the_other_greeting_is_tried_once_at_once_and_then_in_turn() -> None:
    eras = HandshakeMode(is_process=True)
    assert eras.failed(during=True)
    assert eras.mode == "legacy"
    assert not eras.failed(during=True)
    assert eras.mode == "auto"
    eras.settle()
    assert not eras.failed(during=True)
    assert eras.mode == "auto"


def test_a_schema_that_refers_to_itself_is_used_as_far_as_it_can_be_checked() -> None:
    straight = {"type": "object", "properties": {"a": {"$ref": "#"}}}
    doubling = {"allOf": [{"properties": {"a": {"$ref": "#"}}} for _ in range(2)]}
    deep: dict[str, object] = {}
    for _ in range(100):
        deep = {"a": deep}
    assert not unusable(straight)
    assert Checker(straight).mistake(deep) == ""
    assert Checker(straight).mistake({"a": {"a": 1}}).startswith("$.a.a: ")
    assert not unusable(doubling)
    assert Checker(doubling).mistake({"a": {"a": {}}}) == ""
    assert Checker(doubling).mistake(deep) == "it takes too long to check"


def test_a_large_value_is_checked_unless_its_schema_makes_that_take_forever() -> None:
    rows = {"rows": [{"n": n, "text": "x"} for n in range(20_000)]}
    row = {"type": "object", "properties": {"n": {"type": "integer"}}}
    plain = {"type": "object", "properties": {"rows": {"type": "array", "items": row}}}
    assert Checker(plain).mistake(rows) == ""
    costly = {"type": "object", "properties": {"rows": {"items": {"allOf": [row] * 1_000}}}}
    assert not unusable(costly)
    assert Checker(costly).mistake(rows) == "it takes too long to check"


STEPS: list[tuple[dict[str, object], object, int]] = [
    ({"type": "object"}, {"a": 1}, 1),
    ({"properties": {"a": {}, "b": {}}}, {"a": 1}, 2),
    ({"patternProperties": {"x": {}, "y": {}}}, {"a": 1, "b": 2}, 5),
    ({"additionalProperties": {}}, {"a": 1, "b": 2}, 3),
    ({"additionalProperties": False}, {"a": 1}, 1),
    ({"items": {}}, [1, 2, 3], 4),
    ({"prefixItems": [{}, {}], "items": True}, [1, 2, 3], 3),
    ({"items": {}, "properties": {"a": {}}}, "text", 1),
    ({"allOf": [{}, {}], "not": {}, "dependentSchemas": {"a": {}}}, 1, 5),
    ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"$ref": "#/$defs/c/1"}, "c": [{}, {}]}}, 1, 3),
]


@pytest.mark.parametrize(("schema", "value", "steps"), STEPS)
def test_the_steps_of_a_check_are_counted(
    schema: dict[str, object], value: object, steps: int
) -> None:
    assert takes_more_than(steps - 1, schema, value)
    assert not takes_more_than(steps, schema, value)


def test_a_schema_that_is_nothing_but_itself_is_not_followed_for_ever() -> None:
    assert Checker({"$ref": "#"}).mistake({}) == "it takes too long to check"
