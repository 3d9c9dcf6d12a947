"""Alarms as SARIF 2.1.0, the form that code hosts and editors read."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

import msgspec

from remit.features.scan.alarms import Alarm, Level

VERSION = "2.1.0"
SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
FINGERPRINT = "remitScan/v1"


def sarif(alarms: Iterable[Alarm], *, version: str) -> dict[str, Any]:
    """One run with these results; paths are from the folder that the scan ran in."""
    told = list(alarms)
    rules = sorted({alarm.rule for alarm in told})
    seen: dict[str, int] = {}
    return {
        "$schema": SCHEMA,
        "version": VERSION,
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
        "partialFingerprints": {FINGERPRINT: _fingerprint(alarm, file, seen)},
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
