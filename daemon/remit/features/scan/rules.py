"""The rules of the scanner: what one is, and how `rules.toml` is read.

Rules are data, written in RE2, so that each takes time in proportion to the text, whatever the
text. The file stands beside this module and says what its keys mean. It is read strictly, once,
when something is scanned for the first time.
"""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from remit.errors import RemitError
from remit.model.schema import whole

Severity = Literal["low", "medium", "high"]
Category = Literal[
    "instruction_override",
    "role_marker",
    "persona",
    "prompt_leak",
    "exfiltration",
    "credential_request",
    "hidden_text",
    "tool_poisoning",
    "tool_shadowing",
    "pressure",
    "foreign_task",
    "encoded_payload",
    "incomplete_scan",
]

ADVICE: dict[Category, str] = {
    "instruction_override": "Take the sentence out: text by others must not change instructions.",
    "role_marker": "Remove the marker, or write it so that it cannot be read as a speaker.",
    "persona": "Remove the persona: a description says what a thing does, not who the agent is.",
    "prompt_leak": "Take the request out: nothing described here needs an agent's instructions.",
    "exfiltration": "Do not use this until you know who receives the data, and why.",
    "credential_request": "Hand secrets over by configuration; text must not ask for them.",
    "hidden_text": "Delete what cannot be seen, then read what is left.",
    "tool_poisoning": "Do not load this tool before its author has explained the sentence.",
    "tool_shadowing": "Describe this tool alone; it must not steer the use of others.",
    "pressure": "Check who says so: urgency and rank are no reason to obey a text.",
    "foreign_task": "Move the request to where tasks are given; here it can only be injected.",
    "encoded_payload": "Decode it, read it, and write it plainly or remove it.",
    "incomplete_scan": "Shorten the text or scan it in parts: the rest was not read.",
}
SUSPICIOUS = 50
"""Points that make a text suspicious."""
_LOW = 20
_FILE = Path(__file__).with_name("rules.toml")
_NAME = re.compile(r"\{([A-Z]+)\}")
_DEEPEST = 4
"""How often words may stand for words."""


class ScanRulesError(RemitError):
    """Rules that cannot be used; as they are part of the program, so is the fault."""


class ScanRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One suspicious wording; `rules.toml` says what each field means."""

    id: Annotated[str, whole(r"[a-z]+\.[a-z_]+", most=80)]
    category: Category
    language: Annotated[str, whole("([a-z]{2}|any)", most=3)] = "en"
    weight: Annotated[int, msgspec.Meta(ge=1, le=100)]
    pattern: Annotated[str, msgspec.Meta(min_length=1)]
    unless: str = ""
    compact: bool = False
    words: dict[str, str] = {}
    repair: str = ""
    matches: Annotated[str, msgspec.Meta(min_length=1)]
    passes: Annotated[str, msgspec.Meta(min_length=1)]


class _RuleFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    words: dict[str, str]
    rules: list[ScanRule]


@cache
def all_rules() -> tuple[ScanRule, ...]:
    """Every rule that is matched against text, in the order of the file."""
    return parse_rules(_FILE.read_text(encoding="utf-8"))


def repair_of(rule: str, category: Category) -> str:
    """What to do about a finding: what the rule says itself, else what holds of its category."""
    return _repairs().get(rule) or ADVICE[category]


@cache
def _repairs() -> dict[str, str]:
    return {one.id: one.repair for one in all_rules()}


def parse_rules(text: str) -> tuple[ScanRule, ...]:
    """Read rules that are written as TOML; their patterns hold no names of words any more.

    Raises:
        ScanRulesError: this is not TOML, a key is unknown, absent or of the wrong type, two rules
            have one id, or a pattern names words that are not there.
    """
    try:
        file = msgspec.toml.decode(text, type=_RuleFile)
    except msgspec.MsgspecError as error:
        raise ScanRulesError(f"the rules of the scanner cannot be read: {error}") from error
    twice = [rule for rule, count in Counter(one.id for one in file.rules).items() if count > 1]
    if twice:
        raise ScanRulesError(f"two rules of the scanner have the id {twice[0]!r}")
    return tuple(_with_words(rule, {**file.words, **rule.words}) for rule in file.rules)


def severity_of(weight: int) -> Severity:
    """High is enough alone; low never is, nor are two of them."""
    return "high" if weight >= SUSPICIOUS else "medium" if weight > _LOW else "low"


def _with_words(rule: ScanRule, words: Mapping[str, str]) -> ScanRule:
    """The rule with the words in place of their names."""

    def word(match: re.Match[str]) -> str:
        if match[1] not in words:
            raise ScanRulesError(f"the rule {rule.id!r} names words that are not there: {match[0]}")
        return words[match[1]]

    pattern, unless = rule.pattern, rule.unless
    for _ in range(_DEEPEST):
        pattern, unless = _NAME.sub(word, pattern), _NAME.sub(word, unless)
    return msgspec.structs.replace(rule, pattern=pattern, unless=unless, words={})
