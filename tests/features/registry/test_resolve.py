"""Which implementation is chosen, and the arithmetic that says why."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.features.registry.entry import (
    Declaration,
    Entry,
    HealthState,
    declared,
    entry_of,
    tag,
    tags_of,
)
from remit.features.registry.resolve import Candidate, Rate, Resolved, resolve
from remit.model.descriptor import Descriptor


def ids(found: tuple[Resolved, ...]) -> list[str]:
    return [one.id for one in found]


def one(id_: str, rate: float = 0.5, n: float = 0, **more: object) -> Candidate:
    return Candidate(id=id_, overall=Rate(rate, n), **more)  # type: ignore[arg-type]


def test_the_score_is_the_rate_and_the_mean_over_the_tags_less_what_mostly_fails() -> None:
    tags = {"eu": Rate(0.9, 20), "quoted": Rate(0.2, 5)}
    (found,) = resolve([one("a", 0.8, 40, by_tag=tags, health="flaky")], ("eu", "quoted", "new"))
    assert found.score == pytest.approx(0.375 * 0.8 + (0.9 + 0.2 + 0.0) / 3 - 0.2 - 0.3)
    assert found.retry
    assert found.to_json()["arithmetic"] == {
        "base": 0.8,
        "weight": 0.375,
        "n": 40,
        "affinity": 0.3667,
        "tags": {"eu": 0.9, "new": 0.0, "quoted": 0.2},
        "penalties": {"quoted": 0.2, "health:flaky": 0.3},
        "model": None,
    }


def test_what_works_here_beats_what_is_only_good_elsewhere() -> None:
    usual = one("usual", 0.8, 100, by_tag={"eu": Rate(0.25, 20)})
    local = one("local", 0.6, 100, by_tag={"eu": Rate(0.95, 20)})
    assert ids(resolve([usual, local], ("eu",))) == ["local", "usual"]
    assert ids(resolve([usual, local])) == ["usual", "local"]


def test_the_overall_rate_counts_less_the_more_is_known_of_this_context() -> None:
    rates = [Rate(0.6, 0), Rate(0.6, 5), Rate(0.6, 45)]
    found = [resolve([one("a", 0.9, 100, by_tag={"eu": rate})], ("eu",))[0] for rate in rates]
    assert [each.arithmetic.weight for each in found] == [1.0, 0.5, 0.1]


def test_two_failures_are_no_warning_yet() -> None:
    few = one("few", by_tag={"eu": Rate(0.25, 2)})
    (found,) = resolve([few], ("eu",))
    assert found.arithmetic.penalties == {}


@pytest.mark.parametrize("state", ["red", "rejected", "unavailable"])
def test_what_is_broken_or_away_is_never_chosen(state: HealthState) -> None:
    assert resolve([one("a", 0.99, 1000, health=state)]) == ()


def test_what_was_not_tested_is_chosen_only_where_there_is_nothing_else() -> None:
    new, old = one("new", 0.9, health="pending"), one("old", 0.1, 50, health="green")
    assert ids(resolve([new, old])) == ["old"]
    assert ids(resolve([new, one("broken", health="red")])) == ["new"]


def test_a_skill_that_fails_with_a_model_is_not_given_to_it_and_a_tool_is() -> None:
    fails, unproved = Rate(0.4, 5), Rate(0.4, 4)
    assert resolve([one("s", 0.9, layer="skill", by_model=fails)]) == ()
    assert ids(resolve([one("s", 0.9, layer="skill", by_model=unproved)])) == ["s"]
    assert ids(resolve([one("t", 0.9, by_model=fails)])) == ["t"]


def test_equal_scores_are_ordered_by_id() -> None:
    assert ids(resolve([one("c"), one("a"), one("b")])) == ["a", "b", "c"]


def test_who_explores_gets_the_less_tried_of_two_that_are_as_good_as_equal() -> None:
    best, new, bad = one("best", 0.80, 100), one("new", 0.76, 3), one("bad", 0.7, 0)
    assert ids(resolve([best, new, bad])) == ["best", "new", "bad"]
    assert ids(resolve([best, new, bad], exploration=10)) == ["new", "best", "bad"]
    assert ids(resolve([best, new, bad], exploration=3)) == ["best", "new", "bad"]


def test_who_explores_tries_what_may_be_as_good_in_a_new_context_and_not_what_failed_there() -> (
    None
):
    first = one("first", 0.7, 30, by_tag={"eu": Rate(0.75, 12)})
    untried = one("untried", 0.6, 30)
    failed = one("failed", 0.9, 30, by_tag={"eu": Rate(0.2, 3)})
    assert ids(resolve([first, untried, failed], ("eu",)))[0] == "first"
    assert ids(resolve([first, untried, failed], ("eu",), exploration=10))[0] == "untried"
    hopeless = one("hopeless", 0.05, 30)
    assert ids(resolve([first, hopeless, failed], ("eu",), exploration=10))[0] == "first"


RATES = st.builds(Rate, st.floats(0, 1), st.integers(0, 100))
CANDIDATES = st.lists(
    st.builds(
        Candidate,
        id=st.sampled_from("abcdefgh"),
        layer=st.sampled_from(["base", "skill"]),
        health=st.sampled_from(["unverified", "pending", "green", "flaky", "red", "unavailable"]),
        overall=RATES,
        by_tag=st.dictionaries(st.sampled_from(["x", "y", "z"]), RATES),
        by_model=st.none() | RATES,
    ),
    unique_by=lambda one: one.id,
)


@given(CANDIDATES, st.lists(st.sampled_from(["x", "y", "z", "w"])), st.integers(0, 20))
def test_the_choice_depends_on_no_order(
    candidates: list[Candidate], tags: list[str], exploration: int
) -> None:
    found = resolve(candidates, tags, exploration=exploration)
    assert resolve(candidates[::-1], tags[::-1] * 2, exploration=exploration) == found
    assert {one.id for one in found} <= {one.id for one in candidates}
    for each in found:
        parts = each.arithmetic
        added = parts.weight * parts.base + parts.affinity - sum(parts.penalties.values())
        assert each.score == pytest.approx(added)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("EU", "eu"),
        (" Quoted  Fields ", "quoted fields"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("ＣＳＶ", "csv"),  # noqa: RUF001
        ("Cafe\u0301", "caf\u00e9"),
        ("ΓΙΆΝΝΗΣ", "γιάννησ"),
        ("給与", "給与"),
        ("csv\u200b", "csv"),
    ],
)
def test_a_tag_is_the_same_in_any_case_and_composition(text: str, folded: str) -> None:
    assert tag(text) == folded


@given(st.lists(st.text(max_size=80)))
def test_tags_are_folded_for_good(texts: list[str]) -> None:
    found = tags_of(texts)
    assert tags_of(found) == found == tags_of(reversed(texts))
    assert "" not in found


def test_a_tool_is_an_entry_by_itself_and_a_declaration_adds_to_it() -> None:
    described = Descriptor(
        id="tool:mcp:csv:parse",
        kind="tool",
        name="csv_parse",
        category="Data",
        server="csv",
        tags=("EU",),
        event="mcp:csv:parse",
    )
    entry = entry_of(described)
    assert entry is not None
    assert (entry.capability, entry.layer, entry.tags) == (
        "mcp:csv:parse",
        "base",
        ("csv", "data", "eu"),
    )
    more = Declaration(id=entry.id, capability="parse_csv", tags=("Quoted",), version="2")
    found = declared(entry, more, by="operator")
    assert (found.capability, found.version, found.declared_by) == ("parse_csv", "2", "operator")
    assert found.tags == ("csv", "data", "eu", "quoted")
    assert (found.event, found.name) == (entry.event, entry.name)
    assert declared(entry, Declaration(id=entry.id)) == entry


def test_a_channel_and_a_tool_that_cannot_be_called_are_no_entries() -> None:
    assert entry_of(Descriptor(id="channel:mail", kind="channel", name="mail")) is None
    assert entry_of(Descriptor(id="tool:x", kind="tool", name="x")) is None
    assert isinstance(entry_of(Descriptor(id="skill:x", kind="skill", name="x")), Entry)
