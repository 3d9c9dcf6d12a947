"""Edits are noticed however an editor makes them."""

import shutil
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import anyio
import pytest
from structlog.testing import capture_logs
from watchfiles import Change

from remit.kernel.reload import watch as edits_module
from remit.kernel.reload import watch as watch_module
from remit.kernel.reload.watch import folders_of, watch_definitions

DEBOUNCE = 20


class Watched:
    """A site whose reloads are counted."""

    def __init__(self, folder: Path) -> None:
        self.catalogue = folder / "capabilities.yaml"
        self.compositions = folder / "compositions"
        self.compositions.mkdir()
        self.catalogue.write_text("a")
        (self.compositions / "one.yaml").write_text("a")
        self.send, self.reloads = anyio.create_memory_object_stream[str](1000)

    async def reload(self) -> None:
        await self.send.send(self.seen())

    def seen(self) -> str:
        """Everything there is, as one text."""
        paths = [self.catalogue, *sorted(self.compositions.rglob("*.*"))]
        return "|".join(f"{p.name}={p.read_text()}" for p in paths if p.is_file())

    async def until_seen(self) -> None:
        """Wait for a reload that read what is there now."""
        wanted = self.seen()
        with anyio.fail_after(15):
            while await self.reloads.receive() != wanted:
                pass


@pytest.fixture
async def site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> AsyncGenerator[Watched]:
    monkeypatch.setattr(edits_module, "REST_MS", 50)
    monkeypatch.setattr(edits_module, "RETRY_SECONDS", 0.05)
    watched = Watched(tmp_path)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(
            lambda: watch_definitions(
                watched.catalogue, watched.compositions, watched.reload, debounce_ms=DEBOUNCE
            )
        )
        await watched.until_seen()
        yield watched
        tasks.cancel_scope.cancel()
    watched.send.close()
    watched.reloads.close()


def rename_over(site: Watched) -> None:
    new = site.compositions / ".one.yaml.swp"
    new.write_text("b")
    new.replace(site.compositions / "one.yaml")


def replace_folder(site: Watched) -> None:
    new = site.compositions.with_name("new")
    shutil.copytree(site.compositions, new)
    (new / "one.yaml").write_text("b")
    site.compositions.rename(site.compositions.with_name("old"))
    new.rename(site.compositions)


def new_folder(site: Watched) -> None:
    (site.compositions / "deep").mkdir()
    (site.compositions / "deep" / "prompt.md").write_text("b")


EDITS: dict[str, Callable[[Watched], object]] = {
    "written-in-place": lambda site: (site.compositions / "one.yaml").write_text("b"),
    "renamed-over": rename_over,
    "a-new-file": lambda site: (site.compositions / "two.yaml").write_text("b"),
    "a-deleted-file": lambda site: (site.compositions / "one.yaml").unlink(),
    "the-catalogue": lambda site: site.catalogue.write_text("b"),
    "the-folder-replaced": replace_folder,
    "a-new-folder": new_folder,
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
async def test_an_edit_is_noticed_and_so_is_the_next_one(
    site: Watched, edit: Callable[[Watched], object]
) -> None:
    edit(site)
    await site.until_seen()
    (site.compositions / "later.yaml").write_text("c")
    await site.until_seen()


async def test_a_folder_that_goes_and_comes_back_is_watched_again(site: Watched) -> None:
    shutil.rmtree(site.compositions)
    await site.until_seen()
    site.compositions.mkdir()
    (site.compositions / "one.yaml").write_text("d")
    await site.until_seen()


async def test_a_reload_that_fails_is_logged_and_the_watching_goes_on(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    calls = 0

    async def fails_once() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError("too many open files")
        await watched.reload()

    with capture_logs() as logs, pytest.MonkeyPatch.context() as patch:
        patch.setattr(edits_module, "REST_MS", 50)
        patch.setattr(edits_module, "RETRY_SECONDS", 0.01)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                lambda: watch_definitions(
                    watched.catalogue, watched.compositions, fails_once, debounce_ms=DEBOUNCE
                )
            )
            await watched.until_seen()
            tasks.cancel_scope.cancel()
    watched.send.close()
    watched.reloads.close()
    assert [entry["problem"] for entry in logs if entry["event"] == "watch_failed"] == [
        "too many open files"
    ]


def test_what_else_happens_beside_the_catalogue_is_passed_over(tmp_path: Path) -> None:
    catalogue, compositions = tmp_path / "capabilities.yaml", tmp_path / "compositions"
    is_relevant = watch_module._RelevantDefinition(catalogue, compositions)
    assert is_relevant(Change.modified, str(tmp_path / "daemon.log")), "a new watch looks once"
    is_relevant.is_fresh = False
    changed = Change.modified
    assert is_relevant(changed, str(catalogue))
    assert is_relevant(changed, str(compositions / "deep" / "prompt.md"))
    assert is_relevant(changed, str(tmp_path / "..data"))
    assert not is_relevant(changed, str(tmp_path / "daemon.log"))


def test_links_are_watched_where_they_lead(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "site").mkdir()
    (tmp_path / "real" / "capabilities.yaml").write_text("a")
    link = tmp_path / "site" / "capabilities.yaml"
    link.symlink_to(tmp_path / "real" / "capabilities.yaml")
    assert set(folders_of(link, None)) == {str(tmp_path / "real"), str(tmp_path / "site")}
