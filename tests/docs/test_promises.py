"""Sentences about what there is not: they become wrong without anybody touching them.

Each stands in `reviewed_sentences.txt` as it was when a person last read it and found it true. A
sentence that is new, or that was changed, fails here until somebody has read it again.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import ROOT, pages

REVIEWED = Path(__file__).with_name("reviewed_sentences.txt")
DOUBTFUL = re.compile(
    r"\b(?:no command|not yet|this version|for now|will be able|later version|not implemented)\b",
    re.IGNORECASE,
)
_END = re.compile(r"(?<=[.!?;:])\s+(?=[A-Z`'\"*_(\[])|\n{2,}|\n\s*[-*] |\s\|\s")


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"(?ms)^```.*?^```$", "\n", page.read_text(encoding="utf-8"))


def sentences() -> Iterator[str]:
    """Every sentence or table cell that says what there is not, with its page."""
    for page in [*pages(), ROOT / "CONTRIBUTING.md"]:
        if page.name == "CHANGELOG.md":  # tells of its own time
            continue
        for text in _END.split(prose(page)):
            if DOUBTFUL.search(text):
                yield f"{page.relative_to(ROOT)}: {' '.join(text.split()).strip('| ')}"


def test_each_sentence_about_what_there_is_not_was_read_by_a_person() -> None:
    reviewed = set(REVIEWED.read_text(encoding="utf-8").splitlines())
    found = set(sentences())
    new = "\n".join(sorted(found - reviewed))
    assert not new, f"read these again; where they are true, add them to {REVIEWED.name}:\n{new}"
    gone = "\n".join(sorted(reviewed - found))
    assert not gone, f"these stand nowhere any more; take them out of {REVIEWED.name}:\n{gone}"


def test_a_sentence_that_nobody_has_read_is_found() -> None:
    text = "Deny wins. There is no command to approve it. | shown, not enforced by this version |"
    assert [one for one in _END.split(text) if DOUBTFUL.search(one)] == [
        "There is no command to approve it.",
        "shown, not enforced by this version |",
    ]
