"""Which words of a text count."""

import pytest

from remit.text.words import frequency, spelled, stem, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("createPullRequest", ["creat", "pull", "request"], id="camel-case"),
        pytest.param("HTTPServer", ["http", "server"], id="an-acronym-before-a-word"),
        pytest.param("mcp:github.list_issues", ["mcp", "github", "list", "issu"], id="separators"),
        pytest.param("Please help me to send mails", ["send", "mail"], id="request-words-go"),
        pytest.param("version 2 of 10", ["version", "2", "10"], id="numbers-stay"),
        pytest.param("天气", ["天", "气"], id="one-word-a-chinese-sign"),
        pytest.param("погода", ["погода"], id="other-scripts-by-word"),
        pytest.param("😀 !?", [], id="nothing-to-search-for"),
    ],
)
def test_words_of(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    "family",
    [
        ("schedule", "schedules", "scheduling", "scheduled"),
        ("search", "searches", "searching", "searched"),
        ("query", "queries"),
        ("run", "runs", "running"),
        ("calculate", "calculating", "calculates"),
    ],
)
def test_inflections_of_a_word_are_one_word(family: tuple[str, ...]) -> None:
    assert len({stem(word) for word in family}) == 1


def test_short_words_and_other_scripts_are_left_alone() -> None:
    assert [stem(word) for word in ("gas", "bus", "class", "погоды")] == [
        "gas",
        "bus",
        "class",
        "погоды",
    ]


def test_what_is_too_long_for_a_word_is_left_alone() -> None:
    assert stem("x" * 41 + "ing") == "x" * 41 + "ing"


def test_stemming_can_be_switched_off() -> None:
    assert words("Invoices", stemmed=False) == ["invoices"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("please", "every_day"),
        ("remember", "every_day"),
        ("helper", "often"),
        ("zeppelin", "rare"),
        ("\u5831", "often"),  # nobody counted other scripts
    ],
)
def test_words_are_known_by_how_often_people_write_them(word: str, expected: str) -> None:
    assert frequency(stem(word)) == expected


def test_words_are_spelled_in_order_with_nothing_left_out() -> None:
    assert spelled("The helpers ran C++, please!") == ["the", "helper", "ran", "c++", "pleas"]
    assert spelled("\u5831\u544a ok") == ["\u5831", "\u544a", "ok"]
