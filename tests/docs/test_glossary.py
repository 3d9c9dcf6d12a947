"""Each thing has one name: the words of the glossary exist, and those it retired are gone."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, codes, rows, sections

GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
PACKAGE = ROOT / "daemon" / "remit"
WORDS = rows(sections(GLOSSARY)["Words"])
RETIRED = [
    word
    for line in sections(GLOSSARY)["Retired words"].splitlines()
    if line.startswith("| `")
    for word in codes(line.split("|")[1])
]

# What happened stays written as it was called then.
HISTORY = {ROOT / "CHANGELOG.md", ROOT / "docs" / "explanation" / "decisions.md", GLOSSARY}

# Where a contract fixes the word, or it means something else there.
TABLE = "the name of its table, which the databases of installations have"
ALLOWED: dict[str, dict[str, str]] = {
    "made capability": {
        "daemon/remit/features/capabilities/service.py": TABLE,
        "daemon/remit/kernel/store/snapshot.py": TABLE,
    },
    "auditor": {"docs/reference/composition-yaml.md": "the name of a profile in an example"},
}

_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def spelled(text: str) -> str:
    """The words of a text or identifier in lower case: `TokenKeeper` has two."""
    return " ".join(part.lower() for part in _PART.findall(text))


def sources() -> Iterator[Path]:
    """Everything that people read."""
    yield from (ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"))
    yield from (ROOT / "docs").rglob("*.md")
    yield ROOT / "capabilities.yaml"
    yield from (ROOT / "compositions").glob("*.yaml")
    yield from PACKAGE.rglob("*.py")
    yield from PACKAGE.rglob("*.md")


@pytest.fixture(scope="module")
def texts() -> dict[str, list[str]]:
    """The lines of each file, and its path before them, as words."""
    found = {}
    for path in sorted(set(sources()) - HISTORY):
        name = str(path.relative_to(ROOT))
        lines = [name, *path.read_text(encoding="utf-8").splitlines()]
        found[name] = [f" {spelled(line)} " for line in lines]
    return found


@pytest.mark.parametrize("word", WORDS)
def test_a_word_says_where_it_lives(word: str) -> None:
    meaning, place = WORDS[word][:2]
    assert meaning
    assert (PACKAGE / codes(place)[0]).exists(), place


@pytest.mark.parametrize("word", RETIRED)
def test_a_retired_word_is_used_nowhere(texts: dict[str, list[str]], word: str) -> None:
    pattern = re.compile(rf" {spelled(word)}(s|es)? ")
    allowed = ALLOWED.get(word, {})
    found = [
        f"{name}:{number}"
        for name, lines in texts.items()
        for number, line in enumerate(lines)
        if name not in allowed and pattern.search(line)
    ]
    assert found == [], f"the glossary has another word for {word!r}"


def test_what_is_allowed_is_a_retired_word_in_a_file_that_has_it(
    texts: dict[str, list[str]],
) -> None:
    for word, places in ALLOWED.items():
        assert word in RETIRED
        for name, reason in places.items():
            assert reason
            assert any(f" {spelled(word)}" in line for line in texts[name]), name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("TokenKeeper", "token keeper"),
        ("_card_shelf: CardShelf", "card shelf card shelf"),
        ("the HTTPServer of a board", "the http server of a board"),
    ],
)
def test_words_are_found_in_identifiers(text: str, words: str) -> None:
    assert spelled(text) == words
