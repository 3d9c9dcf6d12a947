"""Files of cards, and the spans of the day that they name."""

import pytest

from remit.config.strict.kinds import Report
from remit.errors import Place, Problem
from remit.features.cards.card import (
    MAX_CARD_BYTES,
    MAX_KEYWORD,
    MAX_KEYWORDS,
    Card,
    DaySpan,
    Triggers,
    parse_day_span,
    read_card_file,
)

KEYS = {
    "id": "token-economy",
    "name": "Token economy",
    "description": "What model calls cost here",
    "triggers": "{keywords: [cost, model routing]}",
}


def written(text: str = "Use the small model first.", **keys: str | None) -> str:
    given = {name: value for name, value in (KEYS | keys).items() if value is not None}
    return "---\n" + "".join(f"{n}: {v}\n" for n, v in given.items()) + f"---\n{text}\n"


def read(text: str) -> Card:
    report = Report()
    found = read_card_file(text.encode(), "card.md", "operator", report)
    assert found is not None, report.problems
    assert not report.problems
    return found


def problems_of(text: str | bytes) -> list[Problem]:
    report = Report()
    raw = text.encode() if isinstance(text, str) else text
    assert read_card_file(raw, "card.md", "operator", report) is None
    return report.problems


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("version", "1.2"),  # a number is ambiguous: 1.10 is 1.1
        ("version", '"a b"'),
        ("version", '""'),
        ("reference", "beside.md"),  # it would be a card itself
        ("reference", "../up/a.md"),
        ("reference", "more/../../a.md"),
        ("reference", "/etc/a.md"),
        ("reference", "more/a.txt"),
        ("reference", "http://docs.example/a"),
        ("reference", "file:///etc/passwd"),
    ],
)
def test_a_version_or_reference_that_is_none_is_refused_at_its_place(key: str, value: str) -> None:
    (problem,) = problems_of(written(**{key: value}))
    assert (problem.place.line, bool(problem.hint)) == (6, True)


@pytest.mark.parametrize("value", ["more/a.md", "more/deep/a-b.md", "https://docs.example/a?b#c"])
def test_a_reference_is_a_file_below_the_folder_or_a_url(value: str) -> None:
    card = read(written(reference=f'"{value}"', version='"2.0-rc.1"'))
    assert (card.reference, card.version) == (value, "2.0-rc.1")


def test_context_and_unless_are_read_as_keywords_are() -> None:
    card = read(written(triggers="{keywords: [a], context: [b  c, d], unless: [e]}"))
    assert (card.triggers.context, card.triggers.unless) == (("b c", "d"), ("e",))
    (problem,) = problems_of(written(triggers='{keywords: [a], context: ["--"]}'))
    assert problem.code == "invalid_name"


def test_a_card_with_every_key_is_read() -> None:
    card = read(
        """---
id: token-economy
name: Token economy
description: >
  What model
  calls cost
triggers:
  keywords: [cost, "model   routing", c++]
  session_types: [main, isolated]
  confidence_threshold: 0.4
  time_of_day: [22:00-06:00, morning]
  user_tier: premium
  environment: [production]
priority: 10
token_budget: 600
capabilities: [billing_read]
language: en
---

# Costs

---
Text with a line of dashes.
"""
    )
    assert card == Card(
        id="token-economy",
        name="Token economy",
        description="What model calls cost",
        text="# Costs\n\n---\nText with a line of dashes.",
        triggers=Triggers(
            keywords=("cost", "model routing", "c++"),
            session_types=("main", "isolated"),
            confidence_threshold=0.4,
            time_of_day=("22:00-06:00", "morning"),
            user_tier=("premium",),
            environment=("production",),
        ),
        priority=10,
        token_budget=600,
        capabilities=("billing_read",),
        language="en",
        source="operator",
        place=Place("card.md"),
    )


def test_what_is_left_out_has_the_documented_defaults() -> None:
    card = read(written())
    assert (card.priority, card.token_budget, card.capabilities) == (50, 500, ())
    assert card.triggers.confidence_threshold == 0.6


def test_spellings_of_other_programs_are_understood() -> None:
    card = read(
        written(
            estimatedTokens="600",
            triggers="{keywords: [a1], sessionTypes: [main], confidenceThreshold: 1,"
            " timeOfDay: [evening], userTier: [pro], environmentType: [dev]}",
        )
    )
    assert card.token_budget == 600
    assert card.triggers == Triggers(
        keywords=("a1",),
        session_types=("main",),
        confidence_threshold=1.0,
        time_of_day=("evening",),
        user_tier=("pro",),
        environment=("dev",),
    )


@pytest.mark.parametrize(
    "keys",
    [
        {"token_budget": "1", "estimatedTokens": "1"},
        {"tokenBudget": "1", "estimatedTokens": "1"},
        {"triggers": "{keywords: [a1], sessionTypes: [a], session_types: [a]}"},
    ],
)
def test_one_key_in_two_spellings_stands_twice(keys: dict[str, str | None]) -> None:
    (problem,) = problems_of(written("Text.", **keys))
    assert problem.code == "duplicate_key"


@pytest.mark.parametrize(
    ("keys", "code", "line"),
    [
        pytest.param({"priorty": "3"}, "unknown_key", 6, id="a-typo"),
        pytest.param(
            {"triggers": "{keywords: [a], keyword: [b]}"}, "unknown_key", 5, id="a-typo-inside"
        ),
        pytest.param({"name": None}, "missing_key", 2, id="no-name"),
        pytest.param({"triggers": None}, "missing_key", 2, id="no-triggers"),
        pytest.param({"triggers": "{session_types: [a]}"}, "missing_key", 5, id="no-keywords"),
        pytest.param({"name": '"  "'}, "missing_key", 2, id="an-empty-name"),
        pytest.param({"id": "../etc/passwd"}, "invalid_name", 2, id="a-path-as-id"),
        pytest.param({"id": "Token Economy"}, "invalid_name", 2, id="an-id-with-blanks"),
        pytest.param({"id": "a" * 65}, "invalid_name", 2, id="a-long-id"),
        pytest.param({"id": "1"}, "wrong_type", 2, id="a-number-as-id"),
        pytest.param({"priority": "101"}, "out_of_range", 6, id="priority-too-high"),
        pytest.param({"priority": "-1"}, "out_of_range", 6, id="priority-too-low"),
        pytest.param({"priority": "high"}, "wrong_type", 6, id="priority-in-words"),
        pytest.param({"token_budget": "2001"}, "out_of_range", 6, id="too-many-tokens"),
        pytest.param({"token_budget": "0"}, "out_of_range", 6, id="no-tokens"),
        pytest.param({"capabilities": "[]"}, "wrong_type", 6, id="bound-to-nothing"),
        pytest.param({"capabilities": "[Not A Name]"}, "invalid_name", 6, id="no-capability"),
        pytest.param({"language": "klingon language"}, "invalid_name", 6, id="no-language"),
        pytest.param({"triggers": "{keywords: cost}"}, "wrong_type", 5, id="keywords-no-list"),
        pytest.param({"triggers": "{keywords: []}"}, "wrong_type", 5, id="no-keyword"),
        pytest.param({"triggers": "{keywords: ['']}"}, "invalid_name", 5, id="empty-keyword"),
        pytest.param({"triggers": "{keywords: ['.*']}"}, "invalid_name", 5, id="no-word-in-it"),
        pytest.param({"triggers": "{keywords: [5]}"}, "wrong_type", 5, id="a-number-as-keyword"),
        pytest.param({"triggers": "{keywords: [a, A]}"}, "duplicate_key", 5, id="twice"),
        pytest.param(
            {"triggers": "{keywords: [" + "x" * (MAX_KEYWORD + 1) + "]}"},
            "too_large",
            5,
            id="a-long-keyword",
        ),
        pytest.param(
            {
                "triggers": "{keywords: ["
                + ",".join(f"w{n}" for n in range(MAX_KEYWORDS + 1))
                + "]}"
            },
            "too_large",
            5,
            id="many-keywords",
        ),
        *(
            pytest.param(
                {"triggers": f"{{keywords: [a], confidence_threshold: {value}}}"}, code, 5, id=value
            )
            for value, code in [
                ("1.01", "out_of_range"),
                ("-0.5", "out_of_range"),
                ("true", "wrong_type"),
                ("'0.5'", "wrong_type"),
                (".nan", "wrong_type"),
            ]
        ),
        *(
            pytest.param(
                {"triggers": f"{{keywords: [a], time_of_day: ['{span}']}}"},
                "invalid_name",
                5,
                id=span,
            )
            for span in (
                "25:00-06:00",
                "22-06",
                "08:00-08:00",
                "24:00-06:00",
                "08:00-24:30",
                "dawn",
            )
        ),
    ],
)
def test_a_mistake_is_told_with_its_line_and_the_card_is_left_out(
    keys: dict[str, str | None], code: str, line: int
) -> None:
    (problem,) = problems_of(written("Text.", **keys))
    assert (problem.code, problem.place.line) == (code, line)


def test_a_typo_is_told_with_what_was_probably_meant() -> None:
    (problem,) = problems_of(written(priorty="3"))
    assert problem.hint == "did you mean 'priority'?"


def test_all_mistakes_of_a_card_are_told_at_once() -> None:
    found = problems_of(written(priority="101", capabilities="[]", triggers="{keyword: [a]}"))
    assert [one.code for one in found] == [
        "unknown_key",
        "missing_key",
        "out_of_range",
        "wrong_type",
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("", "empty_file", id="nothing"),
        pytest.param("# Only text", "no_frontmatter", id="no-frontmatter"),
        pytest.param("---\nid: x\nname: y\n", "no_frontmatter", id="frontmatter-without-end"),
        pytest.param("---\n---\ntext", "missing_key", id="empty-frontmatter"),
        pytest.param("---\n- a\n---\ntext", "wrong_type", id="a-list"),
        pytest.param("---\nid: a\nid: b\n---\nx", "duplicate_key", id="a-key-twice"),
        pytest.param("---\nid: &a x\nname: *a\n---\nx", "alias", id="an-alias"),
        pytest.param(written(text="  "), "empty_file", id="no-text"),
        pytest.param(b"---\nid: \xff\n---\n", "not_utf8", id="latin-1"),
        pytest.param(written(text="x" * MAX_CARD_BYTES), "too_large", id="too-large"),
    ],
)
def test_a_file_that_is_no_card_is_refused(text: str | bytes, code: str) -> None:
    assert code in [one.code for one in problems_of(text)]


def test_signs_of_regular_expressions_are_text() -> None:
    keywords = read(written(triggers="{keywords: ['(a+)+$', 'x{1,9}', 'why?']}")).triggers.keywords
    assert keywords == ("(a+)+$", "x{1,9}", "why?")


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("08:00-17:30", ["08:00", "17:29"], ["07:59", "17:30"]),
        ("22:00-06:00", ["22:00", "23:59", "00:00", "05:59"], ["06:00", "21:59"]),
        ("20:00-24:00", ["20:00", "23:59"], ["00:00", "19:59"]),
        ("00:00-24:00", ["00:00", "23:59"], []),
        ("morning", ["05:00", "11:59"], ["12:00", "04:59"]),
        ("night", ["22:00", "04:59"], ["05:00", "21:59"]),
    ],
)
def test_a_span_covers(text: str, inside: list[str], outside: list[str]) -> None:
    span = parse_day_span(text)
    assert span is not None
    assert all(span.covers(minutes(time)) for time in inside)
    assert not any(span.covers(minutes(time)) for time in outside)


def minutes(time: str) -> int:
    hours, _, rest = time.partition(":")
    return int(hours) * 60 + int(rest)


def test_the_parts_of_the_day_leave_no_minute_out_and_none_twice() -> None:
    spans = [parse_day_span(name) for name in ("morning", "afternoon", "evening", "night")]
    for minute in range(24 * 60):
        assert sum(span is not None and span.covers(minute) for span in spans) == 1


@pytest.mark.parametrize("text", ["", "noon", "8:00-9:00", "08:00", "08:60-09:00", "24:00-01:00"])
def test_what_is_no_span_is_none(text: str) -> None:
    assert parse_day_span(text) is None


def test_blanks_and_a_long_dash_are_understood() -> None:
    assert parse_day_span("08:00 \u2013 09:00") == DaySpan(480, 540)
