"""Markdown pages as tests read them: fenced blocks with their directives, tables, links.

A fenced block is run by its language:

    sh       a transcript: each `$ ` line is run, the lines below it must occur in its output in
             this order; `…` stands for anything
    python   a script that must end well
    yaml     a whole capabilities.yaml, or a whole composition, that must load

A comment before a block changes that: `<!-- test: file NAME -->` writes the block to a file, where
later commands find it; `<!-- test: skip REASON -->` says why a block cannot be run. The blocks of
CONTRIBUTING.md go into a copy of the checkout: there, `append NAME` adds a block to a file, and
`edit NAME` puts the lines with a `+` in front of the lines that follow them, and takes away those
with a `-`.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^```(\S*)\s*$")
_DIRECTIVE = re.compile(r"^<!-- test: (file|append|edit|skip) (.+?) -->$")
_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


class Block(msgspec.Struct, frozen=True):
    """One fenced block; `directive` is what the comment before it says."""

    page: Path
    line: int
    language: str
    text: str
    directive: str = ""
    argument: str = ""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Every page whose snippets are run and whose links are followed."""
    top = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md")]
    return [*top, *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    directive = ("", "")
    start, language, inside = 0, "", False
    for number, line in enumerate(lines, start=1):
        fence = _FENCE.match(line)
        if inside and line == "```":
            text = "\n".join(lines[start : number - 1]) + "\n"
            yield Block(page, start, language, text, *directive)
            directive, inside = ("", ""), False
        elif fence and not inside:
            start, language, inside = number, fence[1], True
        elif not inside and (found := _DIRECTIVE.match(line)):
            directive = (found[1], found[2])
        elif not inside and line.strip():
            directive = ("", "")


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    """Where the links of a page lead."""
    return _LINK.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}


def sections(page: Path) -> dict[str, str]:
    """The text under each `##` heading; backquotes of the headings are taken off."""
    parts = re.split(r"^## (.+)$", prose(page), flags=re.MULTILINE)
    return {
        title.strip().strip("`"): text for title, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def rows(text: str) -> dict[str, list[str]]:
    """The rows of the tables in a text, by the code of their first cell; the rest as written."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if not line.startswith("| `"):
            continue
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        name = codes(cells[0])[0]
        assert name not in found, f"{name!r} has two rows"
        found[name] = cells[1:]
    return found


def codes(text: str) -> list[str]:
    """What stands in backquotes."""
    return _CODE.findall(text)
