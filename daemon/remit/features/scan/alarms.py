"""What a scan tells: an alarm about one place, what each rule means, and alarms as SARIF 2.1.0."""

import re
from collections.abc import Iterable
from typing import Any, Literal, get_args
from urllib.parse import quote

import msgspec

from remit.errors import Place
from remit.features.scan.rules import Category, repair_of
from remit.text.unicode import unseen_spans

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""The worst first."""
_EXCERPT = 100
_BMP = 0xFFFF
_SARIF_VERSION = "2.1.0"
_SARIF_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_FINGERPRINT = "remitScan/v1"
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
        """The shape that other programs read."""
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


class RuleHelp(msgspec.Struct, frozen=True):
    """What a rule is about, and what to do about a finding of it."""

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

OWN_RULES: dict[str, RuleHelp] = {
    "file.unreadable": RuleHelp(
        "a file that could not be read, so nobody knows what it says",
        "Repair the file or take it away, then scan again.",
    ),
    "name.not_ascii": RuleHelp(
        "a tool name with letters that may look like others",
        "Rename the tool with a-z, 0-9, '_' and '-'; do not approve it as it is.",
    ),
    "name.secret_file": RuleHelp(
        "a name that asks the agent for the content of a secret file",
        "Do not load this tool: agents fill parameters by their names.",
    ),
    "server.pipe_to_shell": RuleHelp(
        "a server that is started by running what it downloads",
        "Install a fixed version and start that.",
    ),
    "text.padding": RuleHelp(
        "a gap so long that what follows is out of sight",
        "Read what stands behind the gap, then take the gap out.",
    ),
    "text.very_long": RuleHelp(
        "a description so long that nobody reads all of it",
        "Shorten it: every agent pays for it at every turn.",
    ),
    "tools.lookalike_name": RuleHelp(
        "two tools whose names look alike",
        "Keep the one you know and exclude the other.",
    ),
    "tools.names_other": RuleHelp(
        "a description that names a tool of another server",
        "Read the sentence: a tool has no need to know what else is installed.",
    ),
    "tools.same_name": RuleHelp(
        "two servers have a tool of this name and say different things about it",
        "remit shows both with the name of their server; exclude the one that you do not want.",
    ),
    "tools.steers_other": RuleHelp(
        "a description that says how to use a tool of another server",
        "Do not load this tool before its author has explained the sentence.",
    ),
    "unseen.control": RuleHelp(
        "control characters, which people do not see", "Delete them, then read what is left."
    ),
    "unseen.direction": RuleHelp(
        "characters that turn the direction of writing",
        "Delete them: the text reads otherwise than it looks.",
    ),
    "unseen.invisible": RuleHelp("invisible characters", "Delete them, then read what is left."),
}


def describe_rule(rule: str, category: Category | None) -> RuleHelp:
    """What to say about a rule."""
    if category is None:
        return OWN_RULES[rule]
    return RuleHelp(TITLES[category], repair_of(rule, category))


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


def sarif_document(alarms: Iterable[Alarm], *, version: str) -> dict[str, Any]:
    """One run with these results, in the form that code hosts and editors read.

    Paths are from the folder that the scan ran in.
    """
    told = list(alarms)
    rules = sorted({alarm.rule for alarm in told})
    seen: dict[str, int] = {}
    return {
        "$schema": _SARIF_SCHEMA,
        "version": _SARIF_VERSION,
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "remit scan",
                        "version": version,
                        "rules": [_rule(rule, told) for rule in rules],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {"ROOT": {"description": {"text": "where the scan ran"}}},
                "invocations": [{"executionSuccessful": True}],
                "results": [_result(one, rules.index(one.rule), seen) for one in told],
            }
        ],
    }


def _rule(rule: str, alarms: list[Alarm]) -> dict[str, Any]:
    first = next(one for one in alarms if one.rule == rule)
    title, repair = first.title, first.repair
    return {
        "id": rule,
        "name": "".join(part.capitalize() for part in rule.replace(".", "_").split("_")),
        "shortDescription": {"text": title},
        "fullDescription": {"text": f"{title}. {repair}"},
        "help": {"text": repair},
        "defaultConfiguration": {"level": _worst(rule, alarms)},
        "properties": {"tags": ["security", "prompt-injection"]},
    }


def _worst(rule: str, alarms: list[Alarm]) -> Level:
    levels = {one.severity for one in alarms if one.rule == rule}
    return "error" if "error" in levels else "warning" if "warning" in levels else "note"


def _result(alarm: Alarm, index: int, seen: dict[str, int]) -> dict[str, Any]:
    file = alarm.place.file
    kind, _, name = alarm.subject.partition(":")
    return {
        "ruleId": alarm.rule,
        "ruleIndex": index,
        "level": alarm.severity,
        "message": {"text": f"{alarm.subject}: {alarm.message}: {alarm.excerpt}. {alarm.repair}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": _artifact(file),
                    "region": {"startLine": alarm.place.line, "startColumn": alarm.place.column},
                },
                "logicalLocations": [
                    {"fullyQualifiedName": alarm.subject, "name": name, "kind": kind}
                ],
            }
        ],
        "partialFingerprints": {_FINGERPRINT: _fingerprint(alarm, file, seen)},
    }


def _artifact(file: str) -> dict[str, str]:
    if file.startswith("/"):
        return {"uri": f"file://{quote(file)}"}
    return {"uri": quote(file), "uriBaseId": "ROOT"}


def _fingerprint(alarm: Alarm, file: str, seen: dict[str, int]) -> str:
    """The same for the same finding after lines moved; equal ones of a file are counted."""
    import hashlib  # noqa: PLC0415 - only this form needs it

    identity = msgspec.json.encode((alarm.rule, alarm.subject, file, alarm.excerpt))
    digest = hashlib.sha256(identity).hexdigest()[:32]
    count = seen.get(digest, 0)
    seen[digest] = count + 1
    return f"{digest}:{count}"
