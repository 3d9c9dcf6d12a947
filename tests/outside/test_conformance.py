"""The official MCP conformance suite against a real daemon, in both eras of the protocol.

Its `test_*` tools are ordinary events of a profile. What does not apply to a server of tools and
skills is listed by hand, each with its reason; a failure that is not listed fails here, and so does
a listed one that has gone.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.acceptance.site import Daemon
from tests.outside.conformance_site import mcp_url
from tests.outside.parts import Outside

REVISIONS = ["2025-11-25", "2026-07-28"]
SKILLS = ["sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest"]
HERE = Path(__file__).parent
NOT_WRITTEN = {"tasks-status-notifications"}
"""Scenarios that the suite itself passes over for now, whatever the server is."""
WIRE = "wire-schema-valid"
"""A check that the suite adds to every scenario."""

Failures = Mapping[str, set[str]]
"""By scenario, the checks that failed."""


def listed(revision: str) -> Path:
    return HERE / f"conformance-{revision}.yml"


def checks_of(results: Path) -> dict[str, list[dict[str, Any]]]:
    """What the suite wrote, by scenario."""
    found = {}
    for file in results.glob("*/checks.json"):
        name = re.sub(r"^server-|-\d{4}-\d\d-\d\dT[\d-]+Z$", "", file.parent.name, count=2)
        found[name] = json.loads(file.read_text(encoding="utf-8"))
    return found


def failures(checks: Mapping[str, list[dict[str, Any]]]) -> Failures:
    bad = {
        name: {one["id"] for one in ran if one["status"] in ("FAILURE", "WARNING")}
        for name, ran in checks.items()
    }
    return {name: ids for name, ids in bad.items() if ids}


def expected(revision: str, seen: Failures) -> Failures:
    """What the list says; a scenario that is listed as a whole may fail in any way, but fails."""
    told: dict[str, set[str]] = {}
    for entry in yaml.safe_load(listed(revision).read_text(encoding="utf-8"))["server"]:
        scenario, _, check = entry.partition(":")
        told.setdefault(scenario, set()).update({check} if check else seen.get(scenario, {"?"}))
    return told


def idle(checks: Mapping[str, list[dict[str, Any]]]) -> set[str]:
    """Scenarios that passed because they looked at nothing."""
    return {
        name
        for name, ran in checks.items()
        if not any(one["status"] != "SKIPPED" for one in ran if one["id"] != WIRE)
    }


@pytest.mark.parametrize("revision", REVISIONS)
def test_everything_that_a_revision_requires_passes_but_for_what_is_listed(
    conformance: Daemon, outside: Outside, tmp_path: Path, revision: str
) -> None:
    done = outside.run(
        *outside.package("conformance"),
        *("server", "--url", mcp_url(conformance), "--requirements", revision),
        *("--expected-failures", str(listed(revision)), "--output-dir", str(tmp_path / "results")),
        cwd=tmp_path,
        seconds=90,
    )
    checks = checks_of(tmp_path / "results")
    seen = failures(checks)
    assert seen == expected(revision, seen)
    assert idle(checks) <= NOT_WRITTEN
    assert done.returncode == 0, done.stdout[-4_000:]


@pytest.mark.parametrize("scenario", SKILLS)
def test_skills_are_served_as_their_extension_says(
    conformance: Daemon, outside: Outside, tmp_path: Path, scenario: str
) -> None:
    done = outside.run(
        *outside.package("conformance"),
        *("server", "--url", mcp_url(conformance), "--scenario", scenario),
        *("--output-dir", str(tmp_path / "results")),
        cwd=tmp_path,
    )
    checks = checks_of(tmp_path / "results")
    assert set(checks) == {scenario}, done.stdout[-4_000:] + done.stderr
    assert failures(checks) == {}, done.stdout[-4_000:]
    assert idle(checks) == set()


@pytest.mark.parametrize("revision", REVISIONS)
def test_everything_that_is_listed_as_failing_has_a_reason(revision: str) -> None:
    lines = listed(revision).read_text(encoding="utf-8").splitlines()
    entries = [line for line in lines if line.strip().startswith("- ")]
    assert entries
    assert [line for line in entries if not re.fullmatch(r"  - \S+ # .{8,}", line)] == []
