"""Rules about characters that are not seen, or not what they seem; they look at the text itself."""

import re
from collections.abc import Iterator

import msgspec

from remit.awareness.confusables import fold_mixed
from remit.awareness.scan_rule import Category


class UnseenRule(msgspec.Struct, frozen=True):
    """So many of these characters in a text weigh so much."""

    id: str
    pattern: re.Pattern[str]
    few: int
    """The weight of one."""
    many: int
    """The weight of `enough` of them."""
    enough: int
    category: Category = "hidden_text"


_FLAG = "\U0001f3f4[\U000e0061-\U000e007a]{2,6}\U000e007f"
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")

UNSEEN: tuple[UnseenRule, ...] = (
    UnseenRule("hidden.tag_letters", re.compile("[\U000e0020-\U000e007f]"), 30, 60, 4),
    UnseenRule(
        "hidden.selectors", re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}"), 30, 50, 2
    ),
    UnseenRule(
        "hidden.zero_width",
        re.compile("(?<=[A-Za-z])[\xad\u200b-\u200d\u2060-\u2064\ufeff\u180e](?=[A-Za-z])"),
        10,
        40,
        3,
    ),
    UnseenRule(
        "hidden.zero_width_run", re.compile("[\u200b-\u200d\u2060-\u2064\ufeff]{3,}"), 40, 50, 2
    ),
    UnseenRule("hidden.terminal", re.compile("\x1b\\[|\x08{2,}|\x9b"), 25, 40, 3),
)
_DIRECTION = UnseenRule("hidden.direction", re.compile("[\u202a-\u202e\u2066-\u2069]"), 40, 50, 4)
_TWINS_FEW, _TWINS_MANY, _TWINS_ENOUGH = 20, 45, 3


class Unseen(msgspec.Struct, frozen=True):
    """What one of these rules found: the first place, and how much it weighs."""

    rule: str
    category: Category
    weight: int
    at: int


def unseen(text: str) -> Iterator[Unseen]:
    """Everything in the text that is there to be overlooked."""
    if text.isascii() and "\x1b" not in text and "\x08" not in text:
        return
    without_flags = re.sub(_FLAG, lambda match: "x" * len(match.group()), text)
    for rule in UNSEEN:
        yield from _counted(rule, without_flags)
    if not _RIGHT_TO_LEFT.search(text):
        yield from _counted(_DIRECTION, text)
    places: list[int] = []
    fold_mixed(text, lambda at, _was, _now: places.append(at))
    if places:
        weight = _TWINS_MANY if len(places) >= _TWINS_ENOUGH else _TWINS_FEW
        yield Unseen("hidden.lookalikes", "hidden_text", weight, places[0])


def _counted(rule: UnseenRule, text: str) -> Iterator[Unseen]:
    first = rule.pattern.search(text)
    if first is None:
        return
    found = 0
    for _ in rule.pattern.finditer(text):
        found += 1
        if found >= rule.enough:
            break
    weight = rule.many if found >= rule.enough else rule.few
    yield Unseen(rule.id, rule.category, weight, first.start())
