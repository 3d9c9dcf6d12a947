"""lint, migrate, schema and graph: looking after definitions."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.cli.shell import Shell

COMMENTED = """\
# Who reads.
name: clerk
# Old style: every event by name.
allowed_tools:
  - state:get   # one
  - state:list  # two
  - system:stats
"""


def test_lint_tells_each_kind_of_drift_with_its_place(shell: Shell) -> None:
    catalogue = """\
version: 1
capabilities:
  alive: {description: a, event_patterns: [state:get], requires: [needed]}
  needed: {description: b, event_patterns: [state:list]}
  dead: {description: c, event_patterns: ["ghost:*"]}
  idle: {description: d, event_patterns: [state:set]}
  past: {description: e, event_patterns: [state:delete], status: deprecated}
"""
    profile = "name: p\ncapabilities: {alive: true, dead: true, past: true}\n"
    path = shell.write("mine/capabilities.yaml", catalogue)
    shell.write("mine/compositions/p.yaml", profile + "disallowed_tools: [state:list]\n")
    report = shell.json("lint", "--catalogue", str(path), code=1)
    assert set(report) == {
        "dead_patterns",
        "unmapped_events",
        "unused_capabilities",
        "undefined_capabilities",
        "deprecated_in_use",
        "broken_requirements",
        "tool_name_conflicts",
        "exposure_mistakes",
        "commands_not_allowed",
        "handler_mistakes",
        "other_capability",
    }
    (dead,) = report["dead_patterns"]
    assert (dead["name"], dead["file"], dead["line"]) == ("ghost:*", "mine/capabilities.yaml", 5)
    assert [one["name"] for one in report["unused_capabilities"]] == ["idle"]
    assert [one["name"] for one in report["deprecated_in_use"]] == ["past"]
    assert [one["name"] for one in report["broken_requirements"]] != []
    assert "state:get" not in {one["name"] for one in report["unmapped_events"]}
    unmapped = {one["name"]: one for one in report["unmapped_events"]}
    assert unmapped["system:health"]["file"].endswith("tools/events.py")
    assert "base" in {one["name"] for one in report["undefined_capabilities"]}
    text = shell.run("lint", "--catalogue", str(path))
    assert text.code == 1
    assert re.search(r"^mine/capabilities.yaml:5:\d+: ghost:\* \[dead_patterns\]", text.out)


def test_lint_reports_tool_names_that_two_events_would_share(shell: Shell) -> None:
    path = shell.write("mine/capabilities.yaml", "version: 1\ncapabilities: {}\n")
    events = shell.write("events.txt", "async:state_get\nasync_state:get\n")
    report = shell.json("lint", "--catalogue", str(path), "--events", str(events), code=1)
    (conflict,) = report["tool_name_conflicts"]
    assert conflict["events"] == ["async:state_get", "async_state:get"]
    assert conflict["names"] == {
        "async:state_get": "async__state_get",
        "async_state:get": "async_state__get",
    }
    text = shell.run("lint", "--catalogue", str(path), "--events", str(events)).out
    assert "    async:state_get is shown as async__state_get" in text


def test_lint_says_how_to_repair_a_profile_that_could_find_nothing(shell: Shell) -> None:
    text = "version: 1\ncapabilities: {k: {description: d, event_patterns: [state:get]}}\n"
    path = shell.write("mine/capabilities.yaml", text)
    more = "capabilities: [k]\nexposure: discovered\npinned: [state:set]\n"
    shell.write("mine/compositions/p.yaml", f"name: p\n{more}")
    report = shell.json("lint", "--catalogue", str(path), code=1)
    found = [(one["name"], one["line"]) for one in report["exposure_mistakes"]]
    assert found == [("discovered", 3), ("state:set", 4)]
    text = shell.run("lint", "--catalogue", str(path)).out
    assert "    hint: allow discovery:discover, or write 'exposure: all'" in text


@pytest.fixture
def clerk(folders: tuple[Path, Path]) -> Path:
    path = folders[1] / "compositions" / "clerk.yaml"
    path.write_text(COMMENTED)
    return path


def test_a_migration_names_what_no_capability_gives_and_keeps_it_in_the_file(
    shell: Shell, folders: tuple[Path, Path], clerk: Path
) -> None:
    clerk.write_text(COMMENTED.replace("system:stats", "audit:query\n  - NotebookEdit"))
    before = shell.json("resolve", "clerk", *options(folders))
    report = shell.json("migrate", str(clerk), "--write", *options(folders))
    assert report["capabilities"] == ["state_read"]
    assert report["additional_tools"] == ["NotebookEdit", "audit:query"]
    assert report["disallowed_tools"] == []
    assert "additional_tools:" in clerk.read_text()
    after = shell.json("resolve", "clerk", *options(folders))
    assert after["allowed_events"] == before["allowed_events"]
    assert after["allowed_claude_tools"] == before["allowed_claude_tools"] == ["NotebookEdit"]


def options(folders: tuple[Path, Path]) -> tuple[str, ...]:
    return ("--catalogue", str(folders[1] / "capabilities.yaml"))


def test_a_migration_says_what_it_found_and_writes_nothing(
    shell: Shell, folders: tuple[Path, Path], clerk: Path
) -> None:
    report = shell.json("migrate", str(clerk), *options(folders))
    assert report["same"] is True
    assert report["capabilities"] == ["observe", "state_read"]
    assert report["additional_tools"] == []
    assert report["disallowed_tools"] == []
    assert clerk.read_text() == COMMENTED


def test_a_written_migration_keeps_comments_and_grants(
    shell: Shell, folders: tuple[Path, Path], clerk: Path
) -> None:
    before = shell.json("resolve", "clerk", *options(folders))
    clerk.chmod(0o640)
    printed = shell.run("migrate", str(clerk), "--write", *options(folders))
    assert printed.code == 0
    assert printed.out == clerk.read_text()
    assert "# Who reads." in printed.out
    assert "allowed_tools" not in printed.out
    assert clerk.stat().st_mode & 0o777 == 0o640
    for comment in ("# Old style: every event by name.", "# state:get: one", "# state:list: two"):
        assert comment in printed.out
    backup = clerk.with_name("clerk.yaml.bak")
    assert backup.read_text() == COMMENTED
    assert f"the old text is in {backup}" in printed.err
    shell.run("migrate", str(clerk), "--write", *options(folders))
    assert backup.read_text() == COMMENTED
    after = shell.json("resolve", "clerk", *options(folders))
    assert after["allowed_events"] == before["allowed_events"]
    assert after["allowed_claude_tools"] == before["allowed_claude_tools"]


def test_a_catalogue_is_not_migrated_and_the_way_is_told(
    shell: Shell, folders: tuple[Path, Path]
) -> None:
    catalogue = folders[1] / "capabilities.yaml"
    done = shell.run("migrate", str(catalogue), "--write")
    assert done.code == 2
    assert len(done.err.splitlines()) == 2
    assert "defines capabilities; what is migrated is the explicit list of one profile" in done.err
    assert f"remit migrate {folders[1]}/compositions/NAME.yaml" in done.err
    assert list(folders[1].glob("*.bak*")) == []


def test_a_file_outside_the_compositions_is_not_migrated(
    shell: Shell, folders: tuple[Path, Path]
) -> None:
    stray = shell.write("stray.yaml", COMMENTED)
    done = shell.run("migrate", str(stray), "--compositions", str(folders[1] / "compositions"))
    assert done.code == 2
    assert "not one of the compositions" in done.err


def test_the_contracts_explicit_list_becomes_capabilities(
    shell: Shell, contract: tuple[str, ...]
) -> None:
    path = shell.folder / "contract/compositions/base_multi_agent_explicit.yaml"
    report = shell.json("migrate", str(path), *contract)
    assert report["same"] is True
    assert report["capabilities"] == ["spawn_agents", "state_write"]
    assert report["additional_tools"] == ["conversation:create"]
    assert set(report["disallowed_tools"]) >= {"state:delete"}


def test_the_svg_is_well_formed_and_names_what_it_shows(
    shell: Shell, contract: tuple[str, ...]
) -> None:
    done = shell.run("graph", "--svg", *contract)
    assert done.code == 0
    root = ElementTree.fromstring(done.out)  # noqa: S314 - our own text
    assert root.tag.endswith("svg")
    text = " ".join(root.itertext())
    for name in ("base_multi_agent", "reviewer", "state_write", "agent:terminate"):
        assert name in text


@pytest.mark.parametrize(
    ("form", "start"), [("--dot", "digraph"), ("--mermaid", "flowchart"), ("--svg", "<svg")]
)
def test_every_form_of_the_graph(
    shell: Shell, contract: tuple[str, ...], form: str, start: str
) -> None:
    whole = shell.run("graph", form, *contract).out
    part = shell.run("graph", form, "--profile", "quiet", *contract).out
    assert whole.startswith(start)
    assert part.startswith(start)
    assert "state_write" in whole
    assert "state_write" not in part
    answer = shell.json("graph", form, *contract)
    assert (answer["format"], answer["text"]) == (form.removeprefix("--"), whole)
    assert answer["source"]["catalogue"].endswith("contract/capabilities.yaml")


def test_a_graph_can_be_written_to_a_file(shell: Shell, contract: tuple[str, ...]) -> None:
    done = shell.run("graph", "--out", "graph.svg", *contract)
    assert done.out == ""
    assert (shell.folder / "graph.svg").read_text().startswith("<svg")


def test_text_from_definitions_cannot_break_out_of_the_picture(shell: Shell) -> None:
    text = "version: 1\ncapabilities:\n  a: {description: '<script>alert(1)</script>'}\n"
    path = shell.write("mine/capabilities.yaml", text)
    shell.write("mine/compositions/p.yaml", "name: p\ncapabilities: {a: true}\n")
    done = shell.run("graph", "--catalogue", str(path))
    assert "<script" not in done.out
