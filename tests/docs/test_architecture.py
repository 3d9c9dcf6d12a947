"""ARCHITECTURE.md: short, true to the tree, and its walks are those of now."""

import re
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.docs.pages import ROOT, blocks, codes, prose
from tools.lib.walk import measure, shown

from remit.errors import RemitError

PAGE = ROOT / "ARCHITECTURE.md"
INVARIANTS = ROOT / "docs" / "explanation" / "invariants.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PACKAGE = ROOT / "daemon" / "remit"
COMMAND = re.compile(r"\$ \./tools/walk (\w+)( --own)?")
FILE = re.compile(r"^ *\d+ [· ] (\S+\.py)", re.MULTILINE)


def walks() -> Iterator[tuple[str, bool, str]]:
    """The walks that the page shows: the name, whether only its own files, the output."""
    for block in blocks(PAGE):
        command, _, output = block.text.partition("\n")
        if found := COMMAND.fullmatch(command):
            yield found[1], bool(found[2]), output


def code_map() -> Iterator[str]:
    """The first cells of the table of packages."""
    text = PAGE.read_text(encoding="utf-8")
    return (line.split("|")[1] for line in text.splitlines() if line.startswith("| `"))


def test_the_page_begins_with_a_picture() -> None:
    first = next(blocks(PAGE))
    assert first.line < 5
    assert "dispatcher" in first.text


def test_the_walks_of_the_page_touch_the_files_that_the_tool_finds() -> None:
    on_page = list(walks())
    assert len(on_page) == 2
    found = anyio.run(measure, [name for name, _, _ in on_page], None)
    assert not isinstance(found, RemitError)
    for name, only_own, output in on_page:
        now = "\n".join(shown(name, found, only_own=only_own))
        assert FILE.findall(output) == FILE.findall(now), "python tools/lib/walk.py --page"


@pytest.mark.parametrize("page", [PAGE, INVARIANTS, CONTRIBUTING], ids=lambda page: page.name)
def test_every_file_that_the_page_names_is_there(page: Path) -> None:
    named = {code.split()[-1] for code in codes(prose(page)) if code.endswith(".py")}
    assert named
    missing = {
        name for name in named if not (any(PACKAGE.glob(f"**/{name}")) or (ROOT / name).exists())
    }
    assert missing == set()


def test_every_package_has_its_row_in_the_code_map() -> None:
    named = {code for row in code_map() for code in codes(row)}
    folders = [*PACKAGE.glob("*/__init__.py"), *PACKAGE.glob("kernel/*/__init__.py")]
    packages = {str(path.parent.relative_to(PACKAGE)) for path in folders} - {"kernel"}
    assert packages <= named


def test_every_package_on_the_map_exists() -> None:
    shown = [name for row in code_map() for name in codes(row)]
    assert shown
    for name in shown:
        assert (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file(), name
