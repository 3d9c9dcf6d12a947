"""The conformance suite as an upstream server: what our links send, and what they refuse."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from tests.outside.parts import Outside

CLIENT = Path(__file__).parent / "conformance_client.py"
STATEFUL, STATELESS = "2025-11-25", "2026-07-28"
SCENARIOS = [
    ("initialize", STATEFUL),
    ("tools_call", STATEFUL),
    ("tools_call", STATELESS),
    ("sse-retry", STATEFUL),
    ("request-metadata", STATELESS),
    ("http-standard-headers", STATELESS),
    ("http-custom-headers", STATELESS),
    ("http-invalid-tool-headers", STATELESS),
    ("json-schema-ref-no-deref", STATELESS),
    ("json-schema-2020-12-preservation", STATEFUL),
    ("json-schema-2020-12-preservation", STATELESS),
]
"""All that concern a client of tools: the others are about OAuth, and questions to the host."""


@pytest.mark.parametrize(("scenario", "revision"), SCENARIOS)
def test_a_link_speaks_to_outside_servers_as_the_protocol_says(
    outside: Outside, tmp_path: Path, scenario: str, revision: str
) -> None:
    done = outside.run(
        *outside.package("conformance"),
        *("client", "--command", shlex.join([sys.executable, str(CLIENT)]), "--scenario", scenario),
        *("--spec-version", revision, "--output-dir", str(tmp_path / "results")),
        cwd=tmp_path,
    )
    (file,) = (tmp_path / "results").glob("**/checks.json")
    checks = json.loads(file.read_text(encoding="utf-8"))
    bad = [one["id"] for one in checks if one["status"] in ("FAILURE", "WARNING")]
    assert bad == [], done.stdout[-4_000:]
    assert any(one["status"] == "SUCCESS" for one in checks), done.stdout[-4_000:]
    assert done.returncode == 0, done.stdout[-4_000:]
