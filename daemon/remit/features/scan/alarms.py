"""What a scan tells: an alarm about one place, and the rules that there are."""

import re
from collections.abc import Iterable
from typing import Literal, get_args

import msgspec

from remit.features.scan.rules.rule import ADVICE, Category
from remit.model.place import Place
from remit.text.unseen import unseen_spans

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""The worst first."""
_EXCERPT = 100
_BMP = 0xFFFF
_SPACE = re.compile(r"[ \t\r\n]+")


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """Something suspicious at a place, what it is about, and what to do."""

    rule: str
    severity: Level
    title: str
    """What the rule is about."""
    more: str = ""
    """What is special here."""
    excerpt: str
    place: Place
    subject: str
    repair: str

    @property
    def message(self) -> str:
        """What was found."""
        return f"{self.title} {self.more}".strip()

    def to_json(self) -> dict[str, object]:
        """The shape that outside programs read."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "message": self.message,
            "excerpt": self.excerpt,
            "file": self.place.file,
            "line": self.place.line,
            "column": self.place.column,
            "subject": self.subject,
            "repair": self.repair,
        }


class ScanRule(msgspec.Struct, frozen=True):
    """A rule of this scan; those of the scanner of texts are told by their category."""

    title: str
    repair: str


TITLES: dict[Category, str] = {
    "instruction_override": "text that changes the instructions of the agent",
    "role_marker": "a marker that looks like another speaker",
    "persona": "text that tells the agent to be somebody else",
    "prompt_leak": "a request for the agent's own instructions",
    "exfiltration": "text that sends data away",
    "credential_request": "text that asks for secrets",
    "hidden_text": "text that people do not see and models do",
    "tool_poisoning": "a description that makes the agent do more than it says",
    "tool_shadowing": "a description that steers the use of other tools",
    "pressure": "pressure by rank, haste or threat",
    "foreign_task": "a task where none is given",
    "encoded_payload": "text in code",
    "incomplete_scan": "more text than was read",
}

OWN_RULES: dict[str, ScanRule] = {
    "file.unreadable": ScanRule(
        "a file that could not be read, so nobody knows what it says",
        "Repair the file or take it away, then scan again.",
    ),
    "name.not_ascii": ScanRule(
        "a tool name with letters that may look like others",
        "Rename the tool with a-z, 0-9, '_' and '-'; do not approve it as it is.",
    ),
    "name.secret_file": ScanRule(
        "a name that asks the agent for the content of a secret file",
        "Do not load this tool: agents fill parameters by their names.",
    ),
    "server.pipe_to_shell": ScanRule(
        "a server that is started by running what it downloads",
        "Install a fixed version and start that.",
    ),
    "text.padding": ScanRule(
        "a gap so long that what follows is out of sight",
        "Read what stands behind the gap, then take the gap out.",
    ),
    "text.very_long": ScanRule(
        "a description so long that nobody reads all of it",
        "Shorten it: every agent pays for it at every turn.",
    ),
    "tools.lookalike_name": ScanRule(
        "two tools whose names look alike",
        "Keep the one you know and exclude the other.",
    ),
    "tools.names_other": ScanRule(
        "a description that names a tool of another server",
        "Read the sentence: a tool has no need to know what else is installed.",
    ),
    "tools.same_name": ScanRule(
        "two servers have a tool of this name and say different things about it",
        "remit shows both with the name of their server; exclude the one that you do not want.",
    ),
    "tools.steers_other": ScanRule(
        "a description that says how to use a tool of another server",
        "Do not load this tool before its author has explained the sentence.",
    ),
    "unseen.control": ScanRule(
        "control characters, which people do not see", "Delete them, then read what is left."
    ),
    "unseen.direction": ScanRule(
        "characters that turn the direction of writing",
        "Delete them: the text reads otherwise than it looks.",
    ),
    "unseen.invisible": ScanRule("invisible characters", "Delete them, then read what is left."),
}


def describe_rule(rule: str, category: Category | None) -> ScanRule:
    """What to say about a rule."""
    if category is None:
        return OWN_RULES[rule]
    return ScanRule(TITLES[category], ADVICE[category])


def show(text: str, most: int = _EXCERPT) -> str:
    """An excerpt on one line in which everything can be seen."""
    cut = _SPACE.sub(" ", text[:most])
    unseen = {at for start, end, _, _ in unseen_spans(cut) for at in range(start, end)}
    shown = "".join(
        char if char.isprintable() and (char.isascii() or at not in unseen) else _escaped(char)
        for at, char in enumerate(cut)
    ).strip()
    return f"{shown}…" if len(text) > most else shown


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= _BMP else f"\\U{ord(char):08x}"


def by_place(alarm: Alarm) -> tuple[Place, str, str, str]:
    """The stated order of alarms."""
    return (alarm.place, alarm.rule, alarm.subject, alarm.more)


def at_least(alarms: Iterable[Alarm], level: Level) -> tuple[Alarm, ...]:
    """Those that are as bad as this or worse."""
    worst = LEVELS[: LEVELS.index(level) + 1]
    return tuple(one for one in alarms if one.severity in worst)
