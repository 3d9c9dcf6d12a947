"""Pages lead somewhere, and keep their size."""

from pathlib import Path

import pytest
from tests.docs.pages import ROOT, anchors, blocks, codes, links, pages, prose


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_to_something(page: Path) -> None:
    for link in links(page):
        if link.startswith("https://"):
            continue
        target, _, anchor = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(file), f"{page.name}: {link}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        local = (link.partition("#")[0] for link in links(page) if "://" not in link)
        waiting += [(page.parent / link).resolve() for link in local if link]
    assert set(pages()) - reached == set()


def test_the_readme_shows_both_commands() -> None:
    shown = "".join(block.text for block in blocks(ROOT / "README.md"))
    assert "./tools/run" in shown
    assert "./tools/test" in shown


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/explanation/decisions.md"])
def test_every_module_that_a_page_names_is_there(page: str) -> None:
    words = {code.split()[-1] for code in codes(prose(ROOT / page)) if code.strip()}
    named = {word for word in words if word.endswith(".py") and "/" in word}
    folders = (ROOT, ROOT / "daemon" / "remit", ROOT / "socket_client")
    assert named
    assert {word for word in named if not any((one / word).exists() for one in folders)} == set()
