"""What the audit keeps, who may look at it, and how it is proved and rotated."""

import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.features.reviews.gated import GatedDesk
from tests.stores import TemporaryStore

from remit.kernel.audit.chain import AuditRow
from remit.kernel.audit.log import MAX_BYTES, AuditLog, summary
from remit.kernel.audit.proof import Archive

OPEN = "vault:open"


@pytest.fixture
async def desk() -> GatedDesk:
    desk = await GatedDesk().open()
    desk.hire("fay", "free")
    desk.hire("kid", "free", parent="fay")
    desk.hire("bob", "free")
    return desk


async def query(desk: GatedDesk, who: str, **filters: Any) -> list[dict[str, Any]]:
    items = (await desk.ask(who, "audit:query", filters))["items"]
    assert isinstance(items, list)
    return items


async def test_a_change_is_written_with_what_was_asked(desk: GatedDesk) -> None:
    answer = await desk.answer("fay", OPEN, {"number": 1, "why": {"password": "hunter2"}})
    (row,) = await query(desk, "operator", decision=answer.decision)
    assert (row["principal"], row["outcome"], row["reason"]) == ("fay", "allowed", "granted")
    assert row["details"] == {"data": {"number": 1, "why": {"password": "***"}}}
    assert row["revision"] == answer.revision


async def test_a_change_that_fails_has_a_second_row_under_the_same_decision(
    desk: GatedDesk,
) -> None:
    answer = await desk.answer("fay", OPEN, {"number": 1, "why": "fail"})
    rows = await query(desk, "operator", decision=answer.decision)
    assert [(row["outcome"], row["reason"]) for row in rows] == [
        ("failed", "internal"),
        ("allowed", "granted"),
    ]


async def test_a_denial_is_written_and_an_allowed_read_is_not(desk: GatedDesk) -> None:
    await desk.refused("fay", "state:get", {"key": "a"})
    await desk.ask("fay", "vault:look")
    rows = await query(desk, "operator")
    assert [(row["event"], row["outcome"]) for row in rows] == [("state:get", "denied")]


async def test_an_agent_sees_only_itself_and_its_own_agents(desk: GatedDesk) -> None:
    for who in ("fay", "kid", "bob"):
        await desk.ask(who, OPEN, {"number": 1})
    assert {row["principal"] for row in await query(desk, "operator")} == {"fay", "kid", "bob"}
    assert {row["principal"] for row in await query(desk, "fay")} == {"fay", "kid"}
    assert {row["principal"] for row in await query(desk, "kid")} == {"kid"}
    assert len(await query(desk, "fay", agent="kid", limit=1)) == 1
    hidden = await desk.refused("fay", "audit:query", {"agent": "bob"})
    none = await desk.refused("fay", "audit:query", {"agent": "tim"})
    assert hidden.code == "unknown_agent"
    assert repr(hidden).replace("bob", "tim") == repr(none)


async def test_a_page_goes_on_where_the_one_before_ended(desk: GatedDesk) -> None:
    for number in range(7):
        await desk.ask(("fay", "bob")[number % 2], OPEN, {"number": number})
    seen: list[int] = []
    before = None
    while True:
        data = {"limit": 2} | ({"before": before} if before else {})
        page = await desk.ask("fay", "audit:query", data)
        seen += [row["details"]["data"]["number"] for row in page["items"]]
        before = page["next"]
        if before is None:
            break
    assert seen == [6, 4, 2, 0]


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({"event": "vault:*"}, 2),
        ({"event": "vault"}, 0),
        ({"outcome": "denied"}, 1),
        ({"reason": "no_grant"}, 1),
        ({"since": 1000.5}, 1),
        ({"until": 1000.5}, 2),
    ],
)
async def test_filters(desk: GatedDesk, filters: dict[str, Any], count: int) -> None:
    await desk.ask("fay", OPEN, {"number": 1})
    await desk.refused("fay", "state:get", {"key": "a"})
    desk.now += 1
    await desk.ask("bob", OPEN, {"number": 1})
    assert len(await query(desk, "operator", **filters)) == count


# ---- summaries ----

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
)


@given(st.dictionaries(st.text(), JSON))
def test_a_summary_is_bounded_and_json(data: dict[str, Any]) -> None:
    assert len(msgspec.json.encode(summary(data))) <= MAX_BYTES + 100


@given(st.text("abc", min_size=201), st.text("0123456789", min_size=12, max_size=40))
def test_a_summary_holds_no_long_value_and_no_secret(long: str, secret: str) -> None:
    told = msgspec.json.encode(
        summary(
            {
                "value": long,
                "nested": [{"api_key": secret, "Token": [secret], "env": {"A": secret}}],
                "item": {"key": "db/password", "value": secret},
            }
        )
    ).decode()
    assert secret not in told
    assert len(told) < MAX_BYTES


# ---- proof and rotation ----


async def filled(folder: Path, *, keep: int, rows: int) -> tuple[AuditLog, TemporaryStore]:
    store = TemporaryStore(clock=lambda: 0.0)
    audit_log = AuditLog(
        store, clock=lambda: 1.0, show=lambda _: None, archive=Archive(folder), keep=keep
    )
    for number in range(rows):
        await write(audit_log, number)
    return audit_log, store


async def write(audit_log: AuditLog, number: int) -> None:
    await audit_log.record(
        principal="ann",
        event="a:b",
        outcome="allowed",
        reason="granted",
        decision=str(number),
        revision=1,
        details={"ü": number},
    )


async def test_rotation_archives_the_old_rows_and_the_chain_stays_whole(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    audit_log, store = await filled(folder, keep=10, rows=25)
    head = (await audit_log.verify())["head"]
    assert await audit_log.rotate() == 15
    await write(audit_log, 25)
    assert await audit_log.rotate() == 1
    assert len((await store.audit_query(limit=100)).items) == 10
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    verdict = await audit_log.verify()
    assert (verdict["ok"], verdict["rows"]) == (True, 10)
    assert verdict["archived"] == {"files": 2, "rows": 16}
    assert (await audit_log.verify(head))["ok"]
    archived = (folder / "000000000001-000000000015.jsonl").read_bytes().splitlines()
    assert (await audit_log.verify(msgspec.json.decode(archived[3])["hash"]))["ok"]
    assert not (await audit_log.verify("0" * 63 + "1"))["ok"]


@pytest.mark.parametrize("damage", ["changed", "cut", "garbled", "gone"])
async def test_a_damaged_archive_is_found(tmp_path: Path, damage: str) -> None:
    audit_log, _ = await filled(tmp_path, keep=2, rows=8)
    await audit_log.rotate()
    path = tmp_path / "000000000001-000000000006.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    if damage == "changed":
        lines[2] = lines[2].replace(b'"ann"', b'"eve"')
    elif damage == "cut":
        lines.pop()
    elif damage == "garbled":
        lines[2] = b"{nonsense\n"
    else:
        del lines[2]
    path.write_bytes(b"".join(lines))
    verdict = await audit_log.verify()
    assert not verdict["ok"]
    if damage != "cut":
        assert verdict["first_bad"] == 3


async def test_rows_that_a_crash_archived_twice_are_no_damage(tmp_path: Path) -> None:
    audit_log, store = await filled(tmp_path, keep=4, rows=12)
    rows: list[AuditRow] = list(reversed((await store.audit_query(limit=100)).items))
    Archive(tmp_path).write(rows[:5])
    await audit_log.rotate()
    assert (await audit_log.verify())["ok"]


async def test_a_folder_that_cannot_be_written_loses_no_row(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    audit_log, store = await filled(tmp_path / "file", keep=4, rows=12)
    assert await audit_log.rotate() == 0
    assert len((await store.audit_query(limit=100)).items) == 12
