"""Every command says which definitions it speaks of, and none speaks of two sets at once."""

import json
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.acceptance.site import Site, new_site

OTHERS = """\
version: 1
capabilities:
  base: {description: b, event_patterns: [system:health], always_included: true}
  reading: {description: r, event_patterns: [state:get]}
"""
COMMANDS = [
    "check",
    "resolve clerk",
    "can clerk state:get",
    "why observer state:get",
    "who-can state:get",
    "gives state_read",
    "plan",
    "plan --to others",
    "lint",
    "graph --dot",
    "tools observer",
    "claude-args observer",
    "mcp-config observer --host cursor",
    "discover keep --as observer",
    "cards list",
    "cards check",
    "cards try mail",
    "scan",
    "reload",
    "apply --yes",
    "config",
    "migrate others/compositions/clerk.yaml",
]
ABOUT_FILES = [
    "plan --from others --to others",
    "check --catalogue others/capabilities.yaml",
    "can clerk state:get --catalogue others/capabilities.yaml",
    "graph --dot --catalogue others/capabilities.yaml",
    "discover keep --as clerk --catalogue others/capabilities.yaml",
    "migrate others/compositions/clerk.yaml --catalogue others/capabilities.yaml",
]


@pytest.fixture(scope="module")
def torn() -> Generator[Site]:
    """A daemon on the shipped files, and a remit.toml in the folder that names others."""
    with new_site() as site:
        others = site.folder / "others"
        (others / "compositions").mkdir(parents=True)
        (others / "capabilities.yaml").write_text(OTHERS)
        (others / "compositions" / "clerk.yaml").write_text(
            "name: clerk\ncapabilities: [reading]\n"
        )
        (site.folder / "remit.toml").write_text("watch = false\n")
        with site.serving():
            (site.folder / "remit.toml").write_text('catalogue = "others/capabilities.yaml"\n')
            yield site


@pytest.mark.parametrize("command", COMMANDS)
def test_a_mismatch_is_an_error_with_the_repair(torn: Site, command: str) -> None:
    done = torn.run(*command.split())
    assert done.returncode == (1 if command == "config" else 2), done.stdout
    assert (
        f"{torn.folder}/others/capabilities.yaml here ({torn.folder}/remit.toml:1)" in done.stderr
    )
    assert "and the shipped one for the daemon [invalid_settings]" in done.stderr
    assert "leave this folder, or st" in done.stderr


@pytest.mark.parametrize("command", ABOUT_FILES)
def test_who_names_the_files_is_answered_about_them(torn: Site, command: str) -> None:
    done = torn.run(*command.split(), "--json")
    assert done.returncode == 0, done.stderr
    source = json.loads(done.stdout).get("source")
    assert source is None or source["catalogue"].endswith("others/capabilities.yaml")
    assert source is None or source["beside_daemon"]


SAYING = [
    *(command for command in COMMANDS if "others" not in command and command != "apply --yes"),
]


@pytest.fixture(scope="module")
def whole() -> Generator[Site]:
    """A daemon and a folder that agree, where nobody edited anything."""
    with new_site() as site:
        shutil.rmtree(site.compositions)
        site.compositions.mkdir()
        site.add_profile("observer", "capabilities: [state_read]\n")
        site.add_profile("clerk", "capabilities: [state_write]\n")
        with site.serving():
            yield site


@pytest.mark.parametrize("command", SAYING)
def test_a_command_says_which_files_it_speaks_of(whole: Site, command: str) -> None:
    done = whole.run(*command.split())
    assert str(whole.catalogue) in done.stdout + done.stderr
    if command not in ("lint", "scan", "config"):
        source = json.loads(whole.run(*command.split(), "--json").stdout)["source"]
        assert source["catalogue"] == str(whole.catalogue)
        assert source["kind"] == "daemon" or source["beside_daemon"]


def test_folders_of_cards_and_the_file_of_servers_are_taken_over_from_the_daemon(
    site: Site,
) -> None:
    site.configure(card_dirs=["cards"], upstreams="servers.yaml")
    (site.folder / "cards").mkdir()
    card = "---\nid: mail\nname: N\ndescription: D\ntriggers: {keywords: [mail]}\n---\nText\n"
    (site.folder / "cards" / "mail.md").write_text(card)
    with site.serving():
        site.configure()
        assert "mail" in {one["id"] for one in site.answer("cards", "try", "mail")["cards"]}
        site.run("upstream", "add", "git", "--url", "https://example.com/mcp")
        assert "git" in (site.folder / "servers.yaml").read_text()
        site.configure(card_dirs=["elsewhere"])
        assert "card_dirs is" in site.run("cards", "check").stderr
        site.configure(upstreams="others.yaml")
        refused = site.run("upstream", "add", "hg", "--url", "https://example.com/mcp")
        assert "upstreams is" in refused.stderr
        assert not Path(site.folder / "others.yaml").exists()
