"""Starting with what is on disk, or with what was last in force."""

from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs
from tests.fakes import texts
from tests.stores import TemporaryStore

from remit.config.definitions.files import Files, read_files
from remit.errors import DefinitionError
from remit.kernel.authority.revision import Authority, HandlerTable
from remit.kernel.authority.standing import LAST_GOOD
from remit.kernel.dispatch.registry import Registry
from remit.kernel.reload.last_good import GRANTS_BLOB, open_authority

CATALOGUE = "  lab: {description: d, event_patterns: ['lab:*']}\n"
GOOD = texts(CATALOGUE, worker="capabilities: {lab: true}\n")
NARROW = texts(CATALOGUE, worker="capabilities: {lab: true}\ndisallowed_tools: [lab:cook]\n")
BROKEN = texts(CATALOGUE, worker="capabilities: {lba: true}\n")


def events(*names: str) -> HandlerTable:
    registry = Registry()
    for name in names:
        registry.event_handler(name)(events)
    return HandlerTable(registry.handlers())


async def start(store: TemporaryStore, files: Files, *names: str) -> tuple[Authority, Any]:
    table = events(*(names or ("lab:cook", "lab:look")))
    return await open_authority(table, lambda: files, store)


@pytest.fixture
def store() -> TemporaryStore:
    return TemporaryStore(clock=lambda: 0.0)


async def test_the_first_start_is_revision_one_and_no_change(store: TemporaryStore) -> None:
    authority, outcome = await start(store, GOOD)
    assert (authority.catalogue.revision, outcome) == (1, None)


async def test_a_restart_without_a_change_keeps_the_number(store: TemporaryStore) -> None:
    await start(store, GOOD)
    authority, outcome = await start(store, GOOD)
    assert (authority.catalogue.revision, outcome) == (1, None)


async def test_numbers_go_on_growing_over_restarts(store: TemporaryStore) -> None:
    for expected, files in enumerate((GOOD, NARROW, GOOD), start=1):
        authority, _ = await start(store, files)
        assert authority.catalogue.revision == expected


async def test_what_was_edited_while_nothing_ran_is_told_at_the_start(
    store: TemporaryStore,
) -> None:
    await start(store, NARROW)
    _, outcome = await start(store, GOOD)
    assert outcome.plan.changes["worker"].granted == ("lab:cook",)


GUARDS = "approval_required: [lab:cook]\ndisallowed_tools: [lab:look, Bash]\n"


async def test_a_guard_that_was_dropped_while_nothing_ran_is_told_at_the_start(
    store: TemporaryStore,
) -> None:
    guarded = texts(CATALOGUE, worker=f"capabilities: {{lab: true}}\n{GUARDS}")
    await start(store, guarded)
    same, outcome = await start(store, guarded)
    assert (same.catalogue.revision, outcome) == (1, None)
    _, outcome = await start(store, GOOD)
    change = outcome.plan.changes["worker"]
    assert (change.approval_removed, change.denied_removed) == (("lab:cook",), ("Bash",))
    assert change.granted == ("lab:look",)


SHOWN = "exposure: turn\npinned: [lab:look]\nlauncher: {command: sh, env: {A: b}}\n"


async def test_what_is_listed_and_started_is_no_change_at_every_start(
    store: TemporaryStore,
) -> None:
    hidden = CATALOGUE + "  shy: {description: d, event_patterns: [cell:look], mcp_tools: false}\n"
    worker = f"capabilities: [lab, shy]\n{SHOWN}"
    names = ("lab:cook", "lab:look", "cell:look")
    await start(store, texts(hidden, worker=worker), *names)
    authority, outcome = await start(store, texts(hidden, worker=worker), *names)
    assert (authority.catalogue.revision, outcome) == (1, None)
    edited = worker.replace("turn", "discovered").replace("pinned: [lab:look]\n", "")
    _, outcome = await start(store, texts(hidden, worker=edited), *names)
    change = outcome.plan.changes["worker"]
    assert (change.exposure_changed, change.pinned_removed) == (
        ("turn", "discovered"),
        ("lab:look",),
    )
    assert (change.launcher_changed, change.tools_shown, change.tools_hidden) == ((), (), ())


async def test_a_capability_that_waits_for_review_is_no_change_at_every_start(
    store: TemporaryStore,
) -> None:
    gated = texts(
        CATALOGUE.replace("d,", "d, security_review_required: true,"),
        worker="capabilities: {lab: true}\n",
    )
    await start(store, gated)
    authority, outcome = await start(store, gated)
    assert (authority.catalogue.revision, outcome) == (1, None)
    assert authority.catalogue.grants["worker"].pending_review == ("lab",)


async def test_a_new_handler_under_a_granted_wildcard_is_a_new_revision_with_a_plan(
    store: TemporaryStore,
) -> None:
    await start(store, GOOD, "lab:look")
    authority, outcome = await start(store, GOOD, "lab:look", "lab:explode")
    assert authority.catalogue.revision == 2
    assert outcome.plan.changes["worker"].granted == ("lab:explode",)


async def test_broken_files_are_passed_over_for_the_last_good_ones(store: TemporaryStore) -> None:
    await start(store, GOOD)
    with capture_logs() as logs:
        authority, outcome = await start(store, BROKEN)
    assert (authority.catalogue.revision, outcome, authority.is_stale) == (1, None, True)
    assert authority.catalogue.grants["worker"].events == {"lab:cook", "lab:look"}
    (rejected,) = [entry for entry in logs if entry["event"] == "config_rejected"]
    assert "lba" in str(rejected["problems"])
    again, _ = await start(store, BROKEN)
    assert again.is_stale, "the last good files outlive any number of restarts"


async def test_broken_files_at_the_very_first_start_are_refused(store: TemporaryStore) -> None:
    with pytest.raises(DefinitionError):
        await start(store, BROKEN)
    assert await store.blob_get(LAST_GOOD) is None


@pytest.mark.parametrize("damage", [b"", b"\xc1", b"\x80", msgspec.msgpack.encode({"files": 1})])
async def test_damaged_memory_counts_as_none(store: TemporaryStore, damage: bytes) -> None:
    await start(store, GOOD)
    await store.blob_put(LAST_GOOD, damage)
    await store.blob_put(GRANTS_BLOB, damage)
    with pytest.raises(DefinitionError):
        await start(store, BROKEN)
    authority, outcome = await start(store, GOOD)
    assert (authority.catalogue.revision, outcome) == (1, None)


async def test_last_good_files_that_no_longer_compile_do_not_hide_the_mistake(
    store: TemporaryStore,
) -> None:
    await start(store, NARROW)
    with pytest.raises(DefinitionError) as caught:
        await start(store, BROKEN, "lab:look")  # the denied event has gone: a dead denial
    assert "lba" in str(caught.value)


async def test_the_last_good_files_bring_the_files_that_they_name(
    store: TemporaryStore, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("site")
    compositions = folder / "compositions"
    compositions.mkdir()
    catalogue = folder / "capabilities.yaml"
    catalogue.write_bytes(GOOD.contents["capabilities.yaml"])
    (compositions / "prompt.md").write_text("You look.")
    profile = compositions / "worker.yaml"
    profile.write_text("name: worker\ncomponents: [{name: prompt, source: prompt.md}]\n")
    await start(store, read_files(catalogue, compositions))
    (compositions / "prompt.md").write_text("You do as you please.")
    profile.write_text("name: worker\nnonsense: 1\n")
    authority, _ = await start(store, read_files(catalogue, compositions))
    assert authority.is_stale
    assert authority.catalogue.grants["worker"].prompt == "You look."
