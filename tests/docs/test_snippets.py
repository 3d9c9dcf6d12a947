"""Every snippet of every page does what the page says."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, Block, blocks, pages
from tests.docs.terminal import Terminal, open_terminal

from remit.app.features import load_all_handlers
from remit.app.workbench import settings_with
from remit.config.definitions.files import Files, edited, read_files
from remit.config.settings.load import load_settings
from remit.errors import DefinitionError
from remit.kernel.authority.revision import compile_files
from remit.model.event import make_universe

RUN = {"sh", "python", "yaml"}
SHOWN = {"text", "json", "toml"}


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_the_snippets_of_a_page_work_from_top_to_bottom(page: Path) -> None:
    found = [block for block in blocks(page) if block.directive != "skip"]
    if not any(block.language in RUN or block.directive for block in found):
        return
    with open_terminal() as terminal:
        for block in found:
            _try(block, terminal)


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_every_block_says_its_language_and_every_skip_its_reason(page: Path) -> None:
    for block in blocks(page):
        assert block.language in RUN | SHOWN, f"{block.place}: {block.language!r}"
        if block.directive == "skip":
            assert len(block.argument.split()) > 2, f"{block.place}: say why it cannot run"


def _try(block: Block, terminal: Terminal) -> None:
    if block.directive == "file":
        path = terminal.folder / block.argument
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
    elif block.language == "sh":
        _try_transcript(block, terminal)
    elif block.language == "python":
        script = terminal.home / "snippet.py"
        script.write_text(block.text, encoding="utf-8")
        code, output = terminal.run(f"python {script}")
        assert code == 0, f"{block.place}: {output}"
    elif block.language == "yaml":
        _load(block)


def _try_transcript(block: Block, terminal: Terminal) -> None:
    for command, shown in _steps(block):
        code, output = terminal.run(command)
        if not shown:
            assert code == 0, f"{block.place}: $ {command}\n{output}"
        missing = _first_missing(shown, output)
        assert missing is None, f"{block.place}: $ {command}\nno line {missing!r} in\n{output}"


def _steps(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each command with the output that is shown below it."""
    assert block.text.startswith("$ "), f"{block.place}: a transcript starts with a command"
    for step in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, rest = step.partition("\n")
        yield command, [line for line in rest.splitlines() if line.strip() not in ("", "…")]


def _first_missing(shown: list[str], output: str) -> str | None:
    """The first shown line that does not come in its turn; other lines may come between."""
    lines = iter([" ".join(line.split()) for line in output.splitlines()])
    for line in shown:
        pattern = re.compile(".*".join(map(re.escape, " ".join(line.split()).split("…"))))
        if not any(pattern.fullmatch(candidate) for candidate in lines):
            return line
    return None


def _load(block: Block) -> None:
    """A whole file: a composition has a name, a catalogue has none. It must load as it stands."""
    starter = read_files(ROOT / "capabilities.yaml", ROOT / "compositions")
    if re.search(r"^name:", block.text, flags=re.MULTILINE):
        files = edited(starter, None, {"snippet.yaml": block.text}, [])
    else:
        files = Files("capabilities.yaml", [], {"capabilities.yaml": block.text.encode()})
    settings = settings_with(load_settings({}, {}, "/"), handlers=())
    handlers = load_all_handlers(settings).handlers
    universe = make_universe(handler.spec for handler in handlers.values())
    try:
        compile_files(files, universe)
    except DefinitionError as error:
        pytest.fail(f"{block.place}: {error}")
