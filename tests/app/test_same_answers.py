"""A store that was closed and opened again answers everything like one that stayed open.

So nothing that a store remembers beside its tables differs from them, and no use of it ends in
anything but an answer or a refusal.
"""

import tempfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import (
    NOW,
    agent,
    audit_entry,
    make_store,
    public_key,
    review,
)

from remit.app.store import Store
from remit.errors import RemitError
from remit.features.files.store import FileLimits
from remit.kernel.dispatch.bills import BillBounds, BillDay, BillTurn
from remit.kernel.store.records import SessionRecord
from remit.model.grant import SessionKey

KEYS = st.text(alphabet="ab/\U0010ffff", min_size=0, max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
VERSIONS = st.none() | st.integers(min_value=0, max_value=3)
NAMES = st.sampled_from(["a", "b", "operator", ""])
PUBLIC_KEYS = st.integers(min_value=0, max_value=4).map(public_key)
TIMES = st.sampled_from([NOW - 1, NOW, NOW + 1, float("nan")])
STATUSES = st.sampled_from(["pending", "approved", "rejected", "expired", "unknown"])
AGENTS = st.builds(agent, NAMES, st.integers(min_value=0, max_value=4))
SESSIONS = st.builds(SessionRecord, NAMES, NAMES, st.binary(max_size=2))
ENTRIES = st.builds(
    audit_entry,
    principal=NAMES,
    event=st.sampled_from(["a:b", "a:c", "b:c", "a", "a;"]),
    decision=NAMES,
    at=TIMES,
    details=st.sampled_from([b"{}", b'{"a": 1}', b"[]"]),
)
REVIEWS = st.builds(
    review, NAMES, kind=NAMES, status=STATUSES, expires_at=st.none() | TIMES, payload=st.just(b"1")
)
Operation = tuple[str, dict[str, Any]]


def operation(name: str, /, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Operation]:
    return st.tuples(st.just(name), st.fixed_dictionaries(arguments))


STATE = st.one_of(
    operation("state_set", key=KEYS, value=JSON, by=st.just("x"), expect_version=VERSIONS),
    operation("state_get", key=KEYS),
    operation("state_delete", key=KEYS, expect_version=VERSIONS),
    operation(
        "state_list",
        prefix=KEYS,
        limit=st.integers(0, 3),
        after=KEYS,
        max_bytes=st.integers(0, 20),
    ),
)
FEW = st.integers(0, 4)
BILLS = st.one_of(
    operation(
        "bill_add",
        days=st.lists(st.builds(BillDay, NAMES, FEW, st.sampled_from("xy"), FEW, FEW, FEW)),
        turns=st.lists(
            st.builds(BillTurn, NAMES, FEW, st.just(1.5), FEW, FEW, st.just({"x": 1})), max_size=4
        ),
        bounds=st.builds(BillBounds, FEW, FEW, st.integers(1, 3), st.integers(1, 6)),
    ),
    operation("bill_sums", first_day=FEW),
    operation("bill_days", principal=NAMES, first_day=FEW),
    operation("bill_turns", principal=NAMES, limit=FEW),
    operation("key_add", name=NAMES, public_key=PUBLIC_KEYS, profile=st.just("p")),
    operation("agent_add", record=AGENTS),
)
PRINCIPALS = st.one_of(
    operation("key_add", name=NAMES, public_key=PUBLIC_KEYS, profile=st.just("p")),
    operation("key_revoke", name=NAMES),
    operation("key_get", name=NAMES),
    operation("key_list", include_revoked=st.booleans()),
    operation("agent_add", record=AGENTS),
    operation("agent_update", agent=NAMES, profile=st.just("q"), body=st.binary(max_size=2)),
    operation("agent_remove", agents=st.lists(NAMES, max_size=3)),
    operation("agent_list"),
    operation("session_put", record=SESSIONS),
    operation("session_remove", sessions=st.lists(st.tuples(NAMES, NAMES), max_size=3)),
    operation("session_list"),
    operation(
        "mail_add",
        to=NAMES,
        message=st.sampled_from([b"1", b'{"a": 2}', b"not json"]),
        sender=NAMES,
        expires_at=TIMES,
        limit=st.integers(0, 3),
        max_bytes=st.integers(0, 9),
    ),
    operation(
        "mail_take", to=NAMES, now=TIMES, limit=st.integers(0, 2), max_bytes=st.integers(0, 9)
    ),
    operation(
        "name_add",
        owner=NAMES,
        names=st.dictionaries(
            st.sampled_from(["a:b", "b:c", ""]), st.sampled_from(["x", "y"]), max_size=2
        ),
        limit=st.integers(0, 4),
    ),
    operation("name_list", owner=NAMES),
    operation("mail_count", to=NAMES),
    operation("mail_expire", now=TIMES),
)
PLACES = st.builds(SessionKey, NAMES, st.just("k"), st.sampled_from(["", "s"]))
PATHS = st.sampled_from(["/", "/a", "/a/b", "/a/b/c", "/a0", "/b", "a", ""])
SMALL = FileLimits(size=3, count=3, total=5, areas=1)
FILES = st.one_of(
    operation(
        "file_put",
        session=PLACES,
        path=PATHS,
        content=st.binary(max_size=4),
        limits=st.sampled_from([SMALL, FileLimits()]),
    ),
    operation("file_get", session=PLACES, path=PATHS),
    operation("file_list", session=PLACES, prefix=PATHS),
    operation("file_page", session=PLACES, after=PATHS, max_bytes=st.integers(0, 5)),
    operation("file_remove", session=PLACES, path=PATHS, recursive=st.booleans()),
    operation("file_clear", session=PLACES),
    operation("agent_remove", agents=st.lists(NAMES, max_size=1)),
)
AUDIT = st.one_of(
    operation("audit_append", entry=ENTRIES),
    operation(
        "audit_query",
        limit=st.integers(0, 3),
        before=st.none() | st.integers(-1, 9),
        principal=st.none() | NAMES,
        event=st.none() | st.sampled_from(["a:b", "a:*", "*", ""]),
        outcome=st.none() | st.just("denied"),
        decision=st.none() | NAMES,
        since=st.none() | TIMES,
        until=st.none() | TIMES,
    ),
    operation("audit_verify", expected_head=st.none() | st.just("0" * 64)),
    operation("audit_rotate", keep=st.integers(-1, 4), archive=st.just(len)),
)
REVIEWING = st.one_of(
    operation("review_add", review=REVIEWS),
    operation("review_get", review=NAMES),
    operation(
        "review_list",
        status=st.none() | STATUSES,
        kind=st.none() | NAMES,
        limit=st.integers(0, 3),
        after=st.sampled_from(["", "a", "b"]),
    ),
    operation(
        "review_decide", review=NAMES, status=STATUSES, by=NAMES, note=st.just("n"), now=TIMES
    ),
    operation("blob_put", name=NAMES, data=st.binary(max_size=3)),
    operation("blob_get", name=NAMES),
)


async def outcome(store: Store, name: str, arguments: dict[str, Any]) -> object:
    """What the operation answered, or the error a caller would see."""
    try:
        return await getattr(store, name)(**arguments)
    except RemitError as error:
        return (error.code, error.message, error.hint, error.details)


async def assert_same_answers(operations: list[Operation]) -> None:
    with tempfile.TemporaryDirectory() as open_folder, tempfile.TemporaryDirectory() as folder:
        async with make_store(open_folder) as steady:
            half = len(operations) // 2
            for part in (operations[:half], operations[half:]):
                async with make_store(folder) as reopened:
                    for name, arguments in part:
                        expected = await outcome(steady, name, arguments)
                        assert await outcome(reopened, name, arguments) == expected


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(STATE, id="state"),
        pytest.param(PRINCIPALS, id="keys-agents-sessions-and-mail"),
        pytest.param(FILES, id="files"),
        pytest.param(AUDIT, id="the-audit-log"),
        pytest.param(REVIEWING, id="reviews-and-blobs"),
        pytest.param(BILLS, id="bills"),
    ],
)
@settings(max_examples=50)
@given(data=st.data())
async def test_no_use_tells_whether_a_store_was_opened_again(
    data: st.DataObject, use: st.SearchStrategy[Operation]
) -> None:
    await assert_same_answers(data.draw(st.lists(use, max_size=25)))
