"""extension:*: what may be loaded by whom, and what is left when loading fails."""

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import pytest
from tests.fakes import Desk, built_in_handlers, startup, texts

from remit.app.kernel import build_services, make_kernel
from remit.errors import Place, StoreError
from remit.features.discovery.service import Discovery, Gathered
from remit.features.extensions import service as runtime_extensions
from remit.features.extensions.service import EXTENSIONS_BLOB, Extensions, restore
from remit.kernel.authority.revision import HandlerTable
from remit.kernel.dispatch.dispatcher import Dispatcher
from remit.kernel.dispatch.registry import REGISTRY, load_module
from remit.kernel.store.rows import BlobRows
from remit.model.descriptor import Descriptor, SourceRef

CATALOGUE = """\
  base:
    description: d
    event_patterns: [system:health, "discovery:*", "permission:*"]
    always_included: true
  extensions: {description: d, event_patterns: [extension:load, extension:unload, extension:list]}
  kite: {description: d, event_patterns: ["kite:*"]}
  secret: {description: d, event_patterns: []}
"""
PROFILES = {
    "loader": "capabilities: [extensions, kite]",
    "helper": "capabilities: [extensions]",
    "flyer": "capabilities: [kite]",
    "star": "additional_tools: ['extension:*']",
}
MODULE = """
    from remit.kernel.dispatch.registry import event_handler

    @event_handler("kite:fly", capability="kite", effect="read")
    async def fly(height: int) -> dict:
        '''Let a kite fly high in the wind.

        Args:
            height: in metres.
        '''
        return {"height": height}

    @event_handler("kite:crash", capability="kite", wildcard=False)
    def crash() -> None:
        '''Crash it.'''
"""


class Shelf:
    """Stands for the folders."""

    def __init__(self) -> None:
        self.entries: dict[str, Descriptor] = {}
        self.workspace: set[str] = set()

    def put(self, name: str, module: str, **keys: Any) -> None:
        source = SourceRef("extension", place=Place("extensions.yaml"), module=module)
        self.entries[name] = Descriptor(
            id=f"extension:{name}",
            kind="extension",
            name=name,
            source=source,
            **{"description": "Flies kites", **keys},
        )

    def __call__(self) -> Gathered:
        return Gathered(tuple(self.entries.values()), workspace=frozenset(self.workspace))


class Hangar(Desk):
    """A desk whose operator allows a few modules, with a shelf of extensions."""

    def __init__(self, folder: Path) -> None:
        super().__init__(built_in_handlers(), texts(CATALOGUE, **PROFILES))
        self.folder = folder
        self.shelf = Shelf()
        kernel = make_kernel(self.authority, self.store.database, self.keyring)
        allowed = ("kites", "spare_kites", "kite_box.parts")
        self.kernel = build_services(kernel, startup(kernel.database, extension_modules=allowed))
        self.kernel.service(Discovery)._gather = self.shelf
        self.dispatcher = Dispatcher(self.kernel, timeout=5)
        self.module("kites", MODULE)
        self.shelf.put("kites", "kites")

    def module(self, name: str, text: str) -> Path:
        path = self.folder / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
        return path

    async def refusal(self, who: str, event: str, data: Any = None) -> Any:
        answer = await self.answer(who, event, data)
        assert answer.error is not None, answer.data
        return answer.error

    async def load(self, who: str = "loader", name: str = "extension:kites") -> Any:
        return await self.ask(who, "extension:load", {"id": name})


@pytest.fixture
def hangar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hangar]:
    built_in_handlers()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    known = set(sys.modules)
    yield Hangar(tmp_path)
    for name in set(sys.modules) - known:
        if name.startswith(("kite", "spare_kite")):
            del sys.modules[name]


async def test_a_loaded_extension_is_called_found_and_told_as_available(hangar: Hangar) -> None:
    before = await hangar.ask("loader", "discovery:describe", {"id": "extension:kites"})
    assert (before["available"], "not loaded" in before["unavailable_because"]) == (False, True)
    told = await hangar.load()
    assert (told["events"], told["revision"], told["remembered"]) == (["kite:fly"], 2, True)
    assert await hangar.ask("flyer", "kite:fly", {"height": 3}) == {"height": 3}
    found = await hangar.ask("flyer", "discovery:discover", {"query": "let a kite fly in the wind"})
    assert "tool:kite:fly" in [one["id"] for one in found["capabilities"]]
    after = await hangar.ask("loader", "discovery:describe", {"id": "extension:kites"})
    assert after["available"]


async def test_loading_gives_the_loader_nothing_that_its_profile_does_not(hangar: Hangar) -> None:
    told = await hangar.load("helper")
    assert told["events"] == []
    assert (await hangar.refusal("helper", "kite:fly", {"height": 3})).code == "denied"
    assert (await hangar.refusal("loader", "kite:crash")).code == "denied"


async def test_an_unloaded_extension_is_gone_and_can_be_loaded_again_as_it_is_then(
    hangar: Hangar,
) -> None:
    await hangar.load()
    told = await hangar.ask("loader", "extension:unload", {"id": "kites"})
    assert (told["events"], told["revision"]) == (["kite:fly"], 3)
    assert (await hangar.refusal("flyer", "kite:fly", {"height": 3})).code == "denied"
    assert "kites" not in sys.modules
    hangar.module("kites", MODULE.replace('"height": height', '"height": -height'))
    await hangar.load()
    assert await hangar.ask("flyer", "kite:fly", {"height": 3}) == {"height": -3}


async def test_the_list_shows_the_extensions_and_events_that_the_caller_may_see(
    hangar: Hangar,
) -> None:
    hangar.shelf.put("hidden", "spare_kites", capabilities=("secret",))
    hangar.shelf.put("lent", "os.path")
    await hangar.load()
    told = await hangar.ask("helper", "extension:list")
    assert [
        (one["id"], one["loaded"], one["loadable"], one["events"]) for one in told["items"]
    ] == [
        ("extension:kites", True, False, []),
        ("extension:lent", False, False, []),
    ]
    assert told["total"] == 2
    assert "module" not in told["items"][0]
    seen = await hangar.ask("operator", "extension:list")
    hidden, kites, lent = seen["items"]
    assert (hidden["id"], hidden["loadable"]) == ("extension:hidden", True)
    assert kites["events"] == ["kite:crash", "kite:fly"]
    assert (lent["module"], "extension_modules" in lent["refused_because"]) == ("os.path", True)


# ---- who may load what ----


@pytest.mark.parametrize("event", ["extension:load", "extension:unload"])
async def test_no_wildcard_lets_anybody_load(hangar: Hangar, event: str) -> None:
    assert (await hangar.refusal("star", event, {"id": "kites"})).code == "denied"


async def test_an_extension_that_the_caller_does_not_see_is_not_there(hangar: Hangar) -> None:
    hangar.shelf.put("hidden", "spare_kites", capabilities=("secret",))
    hidden = await hangar.refusal("loader", "extension:load", {"id": "extension:hidden"})
    nothing = await hangar.refusal("loader", "extension:load", {"id": "extension:hiddem"})
    assert hidden.code == nothing.code == "not_found"
    assert hidden.message.replace("hidden", "") == nothing.message.replace("hiddem", "")
    assert "hidden" not in nothing.hint


async def test_a_module_that_the_operator_did_not_list_is_never_imported(hangar: Hangar) -> None:
    hangar.module("kite_evil", "raise SystemExit('I was imported')")
    hangar.shelf.put("evil", "kite_evil")
    refused = await hangar.refusal("operator", "extension:load", {"id": "evil"})
    assert (refused.code, "extension_modules" in refused.hint) == ("denied", True)
    assert "kite_evil" not in sys.modules


async def test_what_the_workspace_names_is_never_imported_even_if_listed(hangar: Hangar) -> None:
    hangar.shelf.workspace.add("extension:kites")
    refused = await hangar.refusal("operator", "extension:load", {"id": "kites"})
    assert (refused.code, "capability_dirs" in refused.hint) == ("denied", True)
    assert "kites" not in sys.modules


async def test_an_entry_that_changed_since_it_was_seen_is_looked_at_again(hangar: Hangar) -> None:
    engine = await hangar.kernel.service(Discovery).engine()
    (seen,) = (one for one in engine.index.descriptors if one.id == "extension:kites")
    hangar.shelf.put("kites", "spare_kites")
    hangar.kernel.service(Discovery).folders_changed()
    await hangar.kernel.service(Discovery).engine()
    with pytest.raises(Exception, match="has just changed"):
        hangar.kernel.service(Extensions).check(seen)


# ---- all or nothing ----


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(MODULE + "\n    1 / 0\n", "division by zero", id="fails"),
        pytest.param("raise SystemExit(3)", "SystemExit", id="exits"),
        pytest.param("x = 1", "it has no handlers", id="empty"),
        pytest.param(MODULE.replace("height: int", "height"), "has no type", id="unservable"),
        pytest.param(MODULE.replace("kite:crash", "kite:fly"), "already", id="twice"),
    ],
)
async def test_a_module_that_fails_leaves_nothing_behind(
    hangar: Hangar, text: str, problem: str
) -> None:
    path = hangar.module("kites", text)
    before, registered = hangar.authority.current, REGISTRY.handlers()
    refused = await hangar.refusal("operator", "extension:load", {"id": "kites"})
    assert refused.code == "invalid_handler"
    assert problem in refused.details["problem"]
    told = await hangar.refusal("loader", "extension:load", {"id": "kites"})
    assert str(path) not in f"{told.message} {told.hint} {told.details}"
    assert hangar.authority.current is before
    assert REGISTRY.handlers() == registered
    assert "kites" not in sys.modules
    hangar.module("kites", MODULE)
    await hangar.load()


async def test_an_extension_cannot_take_over_an_event(hangar: Hangar) -> None:
    hangar.module("kites", MODULE.replace("kite:fly", "system:health"))
    seen = await hangar.refusal("operator", "extension:load", {"id": "kites"})
    assert (seen.code, "system:health" in seen.details["problem"]) == ("invalid_handler", True)
    told = await hangar.refusal("loader", "extension:load", {"id": "kites"})
    assert "system:health" not in f"{told.message} {told.hint} {told.details}"
    assert "kites" not in sys.modules
    assert (await hangar.ask("loader", "system:health"))["status"] == "ok"


async def test_a_module_that_is_in_use_is_not_loaded_a_second_time(hangar: Hangar) -> None:
    hangar.shelf.put("again", "kites")
    await hangar.load()
    for name in ("kites", "again"):
        refused = await hangar.refusal("loader", "extension:load", {"id": name})
        assert refused.code == "conflict"
    assert await hangar.ask("flyer", "kite:fly", {"height": 1}) == {"height": 1}


async def test_an_import_that_does_not_end_blocks_nobody_and_comes_to_nothing(
    hangar: Hangar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime_extensions, "IMPORT_SECONDS", 0.05)
    gate = hangar.folder / "gate"
    waiting = f"while not pathlib.Path({str(gate)!r}).exists(): time.sleep(.01)"
    hangar.module("kites", f"import pathlib, time\n{waiting}\n{dedent(MODULE)}")
    try:
        refused = await hangar.refusal("loader", "extension:load", {"id": "kites"})
        again = await hangar.refusal("loader", "extension:load", {"id": "kites"})
    finally:
        gate.touch()  # nobody can end a thread
    assert refused.code == "invalid_handler"
    assert (again.code, "still being imported" in again.message) == ("conflict", True)
    monkeypatch.setattr(runtime_extensions, "IMPORT_SECONDS", 10)
    with anyio.fail_after(10):
        while (late := await hangar.answer("loader", "extension:load", {"id": "kites"})).error:
            assert "still being imported" in late.error.message, "what came late was not dropped"
    assert await hangar.ask("flyer", "kite:fly", {"height": 1}) == {"height": 1}


async def test_an_extension_that_the_definitions_need_is_not_unloaded(hangar: Hangar) -> None:
    await hangar.load()
    hangar.files = texts(
        CATALOGUE, **PROFILES, wary="capabilities: [kite]\ndisallowed_tools: ['kite:f*']"
    )
    await hangar.ask("operator", "config:reload")
    refused = await hangar.refusal("loader", "extension:unload", {"id": "kites"})
    assert (refused.code, refused.details) == ("conflict", {})
    seen = await hangar.refusal("operator", "extension:unload", {"id": "kites"})
    assert "wary.yaml" in seen.details["problem"]
    assert await hangar.ask("flyer", "kite:fly", {"height": 1}) == {"height": 1}
    forget("kites")
    assert await remembered(hangar) == ["extension:kites"]


# ---- the next start ----


async def remembered(hangar: Hangar, *allowed: str) -> list[str]:
    table = HandlerTable(built_in_handlers())
    listed = allowed or hangar.kernel.service(Extensions)._allowed
    restored = await restore(hangar.store, table, hangar.shelf, listed, load_module)
    for brought in restored.brought.values():
        brought.forget()
    return [*restored.brought, *(f"failed {one.id}" for one in restored.failed)]


def forget(*modules: str) -> None:
    """As a new process would not know them."""
    for name in modules:
        sys.modules.pop(name, None)


async def test_the_next_start_loads_what_was_loaded(hangar: Hangar) -> None:
    hangar.shelf.put("spare", "spare_kites")
    hangar.module("spare_kites", MODULE.replace("kite:", "spare:"))
    await hangar.load()
    await hangar.load(name="spare")
    forget("kites", "spare_kites")
    assert await remembered(hangar) == ["extension:kites", "extension:spare"]
    forget("kites")
    await hangar.ask("loader", "extension:unload", {"id": "spare"})
    assert await remembered(hangar) == ["extension:kites"]


@pytest.mark.parametrize("change", ["not-allowed", "gone", "other-module", "workspace"])
async def test_the_next_start_forgets_what_is_no_longer_allowed(
    hangar: Hangar, change: str
) -> None:
    await hangar.load()
    forget("kites")
    before = dict(hangar.shelf.entries)
    if change == "gone":
        hangar.shelf.entries.clear()
    elif change == "other-module":
        hangar.shelf.put("kites", "spare_kites")
    elif change == "workspace":
        hangar.shelf.workspace.add("extension:kites")
    allowed = ["spare_kites"] if change == "not-allowed" else ["kites", "spare_kites"]
    assert await remembered(hangar, *allowed) == []
    hangar.shelf.entries, hangar.shelf.workspace = before, set()
    assert await remembered(hangar) == [], "allowing it again does not bring it back by itself"


async def test_the_next_start_goes_on_without_one_that_fails_and_tries_again_later(
    hangar: Hangar,
) -> None:
    await hangar.load()
    forget("kites")
    hangar.module("kites", "1 / 0")
    assert await remembered(hangar) == ["failed extension:kites"]
    hangar.module("kites", MODULE)
    assert await remembered(hangar) == ["extension:kites"]


async def test_a_damaged_memory_is_an_empty_one(hangar: Hangar) -> None:
    await hangar.store.blob_put(EXTENSIONS_BLOB, b"\xff\x00damaged")
    assert await remembered(hangar) == []


async def test_a_full_disk_keeps_no_extension_loaded(
    hangar: Hangar, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hangar.load()

    async def full(*_arguments: Any, **_fields: Any) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(BlobRows, "blob_put", full)
    hangar.kernel.audit_log.record = full  # type: ignore[method-assign]
    refused = await hangar.refusal("loader", "extension:unload", {"id": "kites"})
    assert refused.code == "store_unavailable"
    assert "kite:fly" not in hangar.authority.catalogue.universe.index


async def test_a_load_that_cannot_be_remembered_says_so(
    hangar: Hangar, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_arguments: Any, **_fields: Any) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(BlobRows, "blob_put", full)
    assert (await hangar.load())["remembered"] is False
    assert await hangar.ask("flyer", "kite:fly", {"height": 1}) == {"height": 1}
