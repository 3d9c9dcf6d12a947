"""The rules of the scanner, held to the examples that they carry, and how their file is read."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import re2

from remit.features.scan import rules as module
from remit.features.scan.rules import ADVICE, ScanRule, ScanRulesError, all_rules, parse_rules
from remit.features.scan.scanner import RuleEngine, scan
from remit.features.scan.text_view import fold_pattern, plain

RULES = [pytest.param(rule, id=rule.id) for rule in all_rules()]
RULE = """
[[rules]]
id = "{id}"
category = "persona"
weight = 40
pattern = '{pattern}'
matches = "a pirate"
passes = "a parrot"
"""
WORDS = "[words]\nSAILOR = 'pirate|captain'\n"
GOOD = WORDS + RULE.format(id="persona.sailor", pattern=r"\b(?:{SAILOR})\b")


def found(text: str) -> set[str]:
    return {finding.rule for finding in scan(text).findings}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_finds_its_example_and_passes_its_counter_example(rule: ScanRule) -> None:
    assert rule.id in found(rule.matches)
    assert rule.id not in found(rule.passes)


@pytest.mark.parametrize("rule", [one for one in RULES if one.values[0].unless])  # type: ignore[union-attr]
def test_the_counter_example_passes_for_the_words_around_it(rule: ScanRule) -> None:
    assert re2.search(fold_pattern(rule.pattern), plain(rule.passes).text)


def test_every_category_of_a_rule_has_its_advice() -> None:
    assert {rule.category for rule in all_rules()} <= set(ADVICE)


def test_every_word_is_used_by_a_rule() -> None:
    path = Path(module.__file__).with_name("rules.toml")
    file: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    patterns = " ".join(one["pattern"] + one.get("unless", "") for one in file["rules"])
    used = set(re.findall(r"\{([A-Z]+)\}", " ".join([*file["words"].values(), patterns])))
    own = {name for one in file["rules"] for name in one.get("words", {})}
    assert used == {*file["words"], *own}
    assert own.isdisjoint(file["words"])


def test_words_stand_in_the_place_of_their_names() -> None:
    (rule,) = parse_rules(GOOD)
    assert rule.pattern == r"\b(?:pirate|captain)\b"
    assert [one.id for one, _, _ in RuleEngine([rule]).hits("o captain")] == ["persona.sailor"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(GOOD + "colour = 'red'\n", "colour", id="a-key-that-is-unknown"),
        pytest.param(GOOD + "weight = 3\n", "overwrite", id="a-key-twice"),
        pytest.param(GOOD.replace("weight = 40", ""), "weight", id="a-key-too-few"),
        pytest.param(GOOD.replace("40", "400"), "weight", id="too-much-weight"),
        pytest.param(GOOD.replace('"persona"', '"pirates"'), "pirates", id="an-unknown-category"),
        pytest.param(GOOD + RULE.format(id="persona.sailor", pattern="x"), "two rules", id="twice"),
        pytest.param(GOOD.replace("{SAILOR}", "{CAPTAIN}"), "CAPTAIN", id="words-not-there"),
        pytest.param(
            GOOD.replace('"persona.sailor"', '"Sailor"'), "id", id="an-id-of-another-form"
        ),
        pytest.param("[words", "cannot be read", id="no-toml"),
    ],
)
def test_a_file_that_cannot_be_read_as_it_is_written_is_refused(text: str, told: str) -> None:
    with pytest.raises(ScanRulesError, match=told):
        parse_rules(text)


def test_a_pattern_that_is_no_pattern_is_refused_with_the_id_of_its_rule() -> None:
    rules = parse_rules(GOOD.replace(r"\b(?:", "(?:("))
    with pytest.raises(ScanRulesError, match=r"persona\.sailor"):
        RuleEngine(rules)
