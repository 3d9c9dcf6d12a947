"""Every screen ends with one command to go on with, and that command can be typed as it stands."""

import re
import shlex
import shutil
from collections.abc import Generator

import pytest
from tests.acceptance.site import Site, new_site

from remit.cli.commands import COMMANDS

SHOWN = {"REMIT_SHOW_NEXT": "1"}
SCREENS = [
    "check",
    "resolve worker",
    "can worker state:get",
    "can worker state:set",
    "why worker state:get",
    "why worker state:set",
    "why worker state:delete",
    "who-can state:get",
    "who-can agent:spawn",
    "gives reading",
    "plan",
    "lint",
    "migrate compositions/listed.yaml",
    "graph --dot",
    "graph --dot --profile worker",
    "tools worker",
    "discover keep --as worker",
    "discover zzqq --as worker",
    "cards",
    "cards list",
    "cards check",
    "cards try mail",
    "scan",
    "claude-args worker",
    "mcp-config worker",
    "agents",
    "spawn worker --id bee",
    "agents",
    "bill",
    "bill bee",
    "revoke bee --yes",
    "key list",
    "key new ann --profile worker",
    "key list",
    "key tokens",
    "key token ann",
    "key tokens",
    "key revoke ann",
    "review list",
    "review approve worker gated",
    "review list --status approved",
    "review reject worker gated",
    "upstream list",
    "upstream add tides --url https://localhost:1/mcp",
    "reload",
    "upstream list",
    "upstream check tides",
    "upstream remove tides",
    "audit",
    "audit verify",
    "config",
    "doctor",
    "apply --yes",
]
"""In this order: what one of them makes, the next one shows."""
CATALOGUE = """\
version: 1
capabilities:
  base: {description: b, event_patterns: [system:health], always_included: true}
  reading: {description: r, event_patterns: [state:get]}
  gated: {description: g, event_patterns: [state:list], security_review_required: true}
"""


@pytest.fixture(scope="module")
def own() -> Generator[Site]:
    """Definitions of one's own, in which no profile has a name of the starter."""
    with new_site() as site:
        shutil.rmtree(site.compositions)
        site.compositions.mkdir()
        site.catalogue.write_text(CATALOGUE, encoding="utf-8")
        denied = "disallowed_tools: [state:delete]\n"
        site.add_profile("worker", f"capabilities: [reading, gated]\n{denied}")
        site.add_profile("listed", "allowed_tools: [state:get]\n")
        with site.serving():
            yield site


def test_every_screen_ends_with_one_command_that_can_be_typed(own: Site) -> None:
    wrong = []
    for screen in SCREENS:
        done = own.run(*screen.split(), env=SHOWN)
        assert done.returncode in (0, 1), f"{screen}: {done.stderr}"
        found = re.findall(r"(?m)^next: remit (.+)$", f"{done.stdout}\n{done.stderr}")
        last = [text.strip().splitlines()[-1:] for text in (done.stdout, done.stderr)]
        if len(found) != 1 or not any(line and line[0].startswith("next: ") for line in last):
            wrong.append(f"{screen}: {found or 'nothing'}")
        elif not can_be_typed(own, found[0]):
            wrong.append(f"{screen}: {found[0]} cannot be typed")
    assert wrong == []


def can_be_typed(own: Site, command: str) -> bool:
    """Whether a command does something, or says in capitals what a person has to choose."""
    words = shlex.split(re.sub(r"\s+\(.*\)$", "", command))
    if words[0] not in COMMANDS:
        return False
    if any(re.fullmatch(r"[A-Z]+", word) for word in words[1:]):
        return True
    if words[0] == "apply" or "revoke-token" in words:  # these change what the others show
        return True
    return own.run(*words).returncode in (0, 1)
