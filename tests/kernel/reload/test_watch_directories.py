"""Edits of skills and manifests are noticed, whatever they are and wherever they happen."""

import shutil
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import anyio
import pytest
from structlog.testing import capture_logs
from watchfiles import Change

from remit.features.skills.directories import CapabilityDirectory, DirectoryScanner
from remit.kernel.reload import watch as edits_module
from remit.kernel.reload import watch as watch_module
from remit.kernel.reload.watch import RelevantPath, watch_directories

DEBOUNCE = 20


class Watched:
    """Two directories, of which the second is not there yet; what each call saw is kept."""

    def __init__(self, folder: Path) -> None:
        self.caps = folder / "caps"
        self.later = folder / "not" / "yet"
        self.write("a")
        self.send, self.calls = anyio.create_memory_object_stream[str](1000)

    def write(self, name: str, text: str = "x", root: Path | None = None) -> None:
        folder = (root or self.caps) / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {text}\n---\n")

    async def changed(self) -> None:
        await self.send.send(self.seen())

    def seen(self) -> str:
        """Everything there is, as one text."""
        found = DirectoryScanner().scan(
            [CapabilityDirectory(self.caps, "user"), CapabilityDirectory(self.later, "user")]
        )
        return "|".join(f"{one.id}={one.description}" for one in found.descriptors)

    async def until_seen(self, expected: str) -> None:
        """Wait for a call that saw exactly this."""
        with anyio.fail_after(15):
            while await self.calls.receive() != expected:
                pass


@pytest.fixture
async def site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> AsyncGenerator[Watched]:
    monkeypatch.setattr(watch_module, "REST_MS", 50)
    monkeypatch.setattr(edits_module, "REST_MS", 50)
    monkeypatch.setattr(edits_module, "RETRY_SECONDS", 0.05)
    watched = Watched(tmp_path)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(
            lambda: watch_directories(
                [watched.caps, watched.later], watched.changed, debounce_ms=DEBOUNCE
            )
        )
        await watched.until_seen("skill:a=x")
        yield watched
        tasks.cancel_scope.cancel()
    watched.send.close()
    watched.calls.close()


def rename_over(site: Watched) -> None:
    new = site.caps / "a" / ".SKILL.md.swp"
    new.write_text("---\nname: a\ndescription: y\n---\n")
    new.replace(site.caps / "a" / "SKILL.md")


def replace_directory(site: Watched) -> None:
    new = site.caps.with_name("new")
    site.write("n", root=new)
    site.caps.rename(site.caps.with_name("old"))
    new.rename(site.caps)


EDITS: dict[str, tuple[Callable[[Watched], object], str]] = {
    "an-edit": (lambda site: site.write("a", "y"), "skill:a=y"),
    "a-rename-over": (rename_over, "skill:a=y"),
    "an-addition": (lambda site: site.write("b"), "skill:a=x|skill:b=x"),
    "a-deep-addition": (
        lambda site: site.write("b", root=site.caps / "c" / "d"),
        "skill:a=x|skill:b=x",
    ),
    "a-deleted-file": (lambda site: (site.caps / "a" / "SKILL.md").unlink(), ""),
    "a-deleted-folder": (lambda site: shutil.rmtree(site.caps / "a"), ""),
    "a-folder-moved-out": (
        lambda site: (site.caps / "a").rename(site.caps.with_name("out")),
        "",
    ),
    "the-directory-replaced": (replace_directory, "skill:n=x"),
    "the-directory-deleted": (lambda site: shutil.rmtree(site.caps), ""),
    "a-directory-that-appears": (
        lambda site: site.write("b", root=site.later),
        "skill:a=x|skill:b=x",
    ),
}


@pytest.mark.parametrize(("edit", "expected"), EDITS.values(), ids=EDITS.keys())
async def test_an_edit_is_noticed_and_so_is_the_next_one(
    site: Watched, edit: Callable[[Watched], object], expected: str
) -> None:
    edit(site)
    await site.until_seen(expected)
    site.write("z", root=site.later)
    await site.until_seen("|".join(filter(None, [expected, "skill:z=x"])))


async def test_a_directory_that_goes_and_comes_back_is_watched_again(site: Watched) -> None:
    shutil.rmtree(site.caps)
    await site.until_seen("")
    site.write("b")
    await site.until_seen("skill:b=x")


async def test_a_call_that_fails_is_logged_and_the_watching_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "REST_MS", 50)
    monkeypatch.setattr(edits_module, "REST_MS", 50)
    monkeypatch.setattr(edits_module, "RETRY_SECONDS", 0.01)
    watched = Watched(tmp_path)
    calls = 0

    async def fails_once() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError("too many open files")
        await watched.changed()

    with capture_logs() as logs:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                lambda: watch_directories([watched.caps], fails_once, debounce_ms=DEBOUNCE)
            )
            await watched.until_seen("skill:a=x")
            tasks.cancel_scope.cancel()
    watched.send.close()
    watched.calls.close()
    problems = [one["problem"] for one in logs if one["event"] == "capability_watch_failed"]
    assert problems == ["too many open files"]


def test_hidden_files_are_passed_over_and_mounted_ones_are_not() -> None:
    is_relevant = RelevantPath({"/home/.remit/capabilities": (1, 1)})
    changed = Change.modified
    root = "/home/.remit/capabilities"
    assert is_relevant(changed, root)
    assert is_relevant(changed, f"{root}/a/SKILL.md")
    assert is_relevant(changed, f"{root}/..data")
    assert not is_relevant(changed, f"{root}/a/.SKILL.md.swp")
    assert not is_relevant(changed, f"{root}/.git/index")
