"""How fast pages become Markdown, against markdownify and html2text.

    pages.py [FOLDER …] [--count N] [--json FILE]

Pages are taken from folders of HTML, chosen by a fixed seed; without one, from the documentation of
Rust if it is on this machine, else they are made up, and the table says so. Everybody gets the same
text. The last row is the whole way of the daemon: a process for each page, with its limits.
"""

import sys

sys.path.append(sys.path.pop(0))  # socket.py beside this file must not stand for the library's

import argparse
import random
import subprocess
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import anyio
from report import INSTALL, Report, shortest, use_checkout

use_checkout()

from remit.features.web.page import convert_page  # noqa: E402 - after the checkout can be imported

Convert = Callable[[str], str]

SEED = 7
SMALLEST, LARGEST = 5_000, 600_000
REPEATS = 3
LIMIT = 5_000_000
DEPTH = 20_000
"""Nested elements of the page that is made to break a converter."""


def main() -> int:
    """Measure everybody on the same pages."""
    options = _options()
    pages, where = _pages(options.folders, options.count)
    size = sum(map(len, pages))
    report = Report(f"HTML to Markdown: {len(pages)} pages, {size / 1e6:.1f} MB, {where}")
    ours = _seconds(_html_to_markdown(), pages)
    rate = f"{size / ours / 1e6:.1f} MB/s"
    for name, convert in _peers(report).items():
        theirs = _seconds(convert, pages)
        note = f"{rate} against {size / theirs / 1e6:.1f} MB/s; {_survival(convert)}"
        report.faster("html-to-markdown", name, theirs / ours, at_least=2, note=note)
    whole = shortest(lambda: anyio.run(_in_processes, pages), repeats=1)
    each = (whole - ours) / len(pages) * 1000
    report.slower("web_fetch", "html-to-markdown", whole / ours, note=f"{each:.0f} ms more a page")
    return report.finish(options.json)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows as JSON")
    return parser.parse_args()


def _pages(folders: list[Path], count: int) -> tuple[list[str], str]:
    folders = folders or _rust_documentation()
    found = sorted(path for folder in folders for path in folder.rglob("*.html"))
    chosen = random.Random(SEED).sample(found, len(found))  # noqa: S311 - the same each time
    fitting = (path for path in chosen if SMALLEST <= path.stat().st_size <= LARGEST)
    pages = [
        path.read_text(encoding="utf-8", errors="replace")
        for path, _ in zip(fitting, range(count), strict=False)
    ]
    if pages:
        return pages, f"of {len(found):,} in {', '.join(map(str, folders))}"
    return [_made_up(at) for at in range(count)], "MADE UP: no folder of pages was found"


def _rust_documentation() -> list[Path]:
    try:
        done = subprocess.run(
            ["rustc", "--print", "sysroot"],  # noqa: S607 - whichever is there
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return []
    folder = Path(done.stdout.strip(), "share", "doc", "rust", "html")
    return [folder] if folder.is_dir() else []


def _made_up(at: int) -> str:
    part = (
        "<h2>Part {0}</h2><p>Some <b>bold</b> words and <a href='/p/{0}'>a link</a> in a row.</p>"
        "<ul><li>one<li>two</ul><pre><code>x = {0}\n</code></pre>"
        "<table><tr><th>a<th>b<tr><td>{0}<td>c</table>"
    )
    parts = "".join(part.format(number) for number in range(50 + 40 * at))
    return f"<!doctype html><html><head><title>{at}</title></head><body>{parts}</body></html>"


def _html_to_markdown() -> Convert:
    module = import_module("html_to_markdown")
    options = module.ConversionOptions(extract_metadata=False)
    return lambda page: str(module.convert(page, options).content)


def _peers(report: Report) -> dict[str, Convert]:
    wanted: dict[str, Callable[[], Convert]] = {
        "html2text": lambda: import_module("html2text").html2text,
        "markdownify": lambda: import_module("markdownify").markdownify,
    }
    found = {}
    for name, load in wanted.items():
        try:
            found[name] = load()
        except ImportError:
            report.skip("html-to-markdown", name, INSTALL)
    return found


def _seconds(convert: Convert, pages: list[str]) -> float:
    return shortest(lambda: [convert(page) for page in pages], repeats=REPEATS)


def _survival(convert: Convert) -> str:
    """What becomes of a peer at a page of nested elements."""
    try:
        convert("<div>" * DEPTH)
    except RecursionError:
        return "deep nesting ends in a RecursionError"
    return "survives deep nesting"


async def _in_processes(pages: list[str]) -> None:
    for page in pages:
        await convert_page(page, "markdown", limit=LIMIT)


if __name__ == "__main__":
    sys.exit(main())
