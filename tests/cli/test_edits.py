"""plan, lint and migrate: before an edit is put in force."""

import re
import shutil
from pathlib import Path

import pytest
from tests.cli.shell import Shell

from remit.config.definitions.files import starter_dir

COMMENTED = """\
# Who reads.
name: clerk
# Old style: every event by name.
allowed_tools:
  - state:get   # one
  - state:list  # two
  - system:stats
"""


@pytest.fixture
def folders(shell: Shell) -> tuple[Path, Path]:
    """Two copies of the starter: one to leave alone, one to edit."""
    made = []
    for name in ("old", "new"):
        folder = shell.folder / name
        shutil.copytree(starter_dir() / "compositions", folder / "compositions")
        shutil.copy(starter_dir() / "capabilities.yaml", folder)
        made.append(folder)
    return made[0], made[1]


def between(folders: tuple[Path, Path]) -> tuple[str, ...]:
    return ("--from", str(folders[0]), "--to", str(folders[1]))


def test_no_edit_is_no_change(shell: Shell, folders: tuple[Path, Path]) -> None:
    report = shell.json("plan", *between(folders))
    assert report["profiles"] == {}
    summary = report["summary"]
    assert (summary["granted"], summary["revoked"], summary["profiles"]) == (0, 0, 0)
    assert summary["agents"] == 0


def test_a_plan_names_widenings_first_and_the_summary_last(
    shell: Shell, folders: tuple[Path, Path]
) -> None:
    compositions = folders[1] / "compositions"
    listed = compositions / "base_multi_agent_explicit.yaml"
    listed.write_text(listed.read_text().replace("        - state:set\n", ""))
    (compositions / "minimal.yaml").write_text(
        "name: minimal\ncapabilities: {state_read: true, multi_agent_todo: true}\n"
    )
    executor = compositions / "executor.yaml"
    executor.write_text(executor.read_text() + "limits: {max_concurrent: 3}\n")
    report = shell.json("plan", *between(folders))
    assert list(report) == ["source", "profiles", "agents", "summary"]
    names = list(report["profiles"])
    assert names.index("minimal") < names.index("base_multi_agent_explicit")
    assert report["profiles"]["base_multi_agent_explicit"] == {
        "granted": [],
        "revoked": ["state:set"],
        "tools_granted": [],
        "tools_revoked": [],
        "limits_changed": {},
        "approval_added": [],
        "approval_removed": [],
        "tools_shown": [],
        "tools_hidden": ["state:set"],
        "tools_changed": [],
        "exposure_changed": [],
        "pinned_added": [],
        "pinned_removed": [],
        "max_effect_changed": [],
        "review_added": [],
        "review_removed": [],
        "denied_added": [],
        "denied_removed": [],
        "launcher_changed": [],
    }
    granted = report["profiles"]["minimal"]["granted"]
    assert granted == ["state:get", "state:list", "todo:write_todos"]
    assert report["profiles"]["minimal"]["tools_granted"] == ["TodoRead", "TodoWrite"]
    assert report["profiles"]["executor"]["limits_changed"] == {"max_concurrent": [None, 3]}
    text = shell.run("plan", *between(folders)).out.splitlines()
    assert "  + state:get" in text
    assert "  - state:set" in text
    assert not [line for line in text if "no tool any more" in line]
    assert "  ~ max_concurrent: no limit → 3" in text
    assert text[-1].startswith("7 granted, 1 revoked in ")


HELD_BACK = """\
version: 1
capabilities:
  read: {description: d, event_patterns: [state:get]}
  write: {description: d, event_patterns: [state:set], security_review_required: REVIEW}
"""


@pytest.mark.parametrize(
    ("old", "new", "field", "entry", "line"),
    [
        ("approval_required: [state:get]", "", "approval_removed", "state:get", "no longer waits"),
        ("", "approval_required: [state:get]", "approval_added", "state:get", "waits for approval"),
        ("disallowed_tools: [state:delete]", "", "denied_removed", "state:delete", "no longer d"),
        ("", "disallowed_tools: [state:delete]", "denied_added", "state:delete", "denied, so no"),
        ("", "disallowed_tools: [Bash]", "denied_added", "Bash", "denied, so no"),
        ("", "capabilities: {read: true, write: true}", "review_added", "write", "waits for a sec"),
        ("capabilities: [read, write]", "", "review_removed", "write", "no longer waits for a sec"),
        ("", "pinned: [state:get]", "pinned_added", "state:get", "listed whatever"),
        ("pinned: [state:get]", "", "pinned_removed", "state:get", "listed as the exposure says"),
    ],
)
def test_a_plan_shows_what_changes_authority_without_granting_or_revoking(
    shell: Shell, old: str, new: str, field: str, entry: str, line: str
) -> None:
    for name, text in (("old", old), ("new", new)):
        more = text if "capabilities" in text else f"capabilities: [read]\n{text}"
        shell.write(f"{name}/capabilities.yaml", HELD_BACK.replace("REVIEW", "true"))
        shell.write(f"{name}/compositions/p.yaml", f"name: p\n{more}\n")
    folders = ("--from", str(shell.folder / "old"), "--to", str(shell.folder / "new"))
    change = shell.json("plan", *folders)["profiles"]["p"]
    assert {key: value for key, value in change.items() if value} == {field: [entry]}
    assert f"  ~ {entry}: {line}" in shell.run("plan", *folders).out


def test_a_review_that_an_edit_asks_for_takes_the_events_and_says_why(shell: Shell) -> None:
    for name, review in (("old", "false"), ("new", "true")):
        shell.write(f"{name}/capabilities.yaml", HELD_BACK.replace("REVIEW", review))
        shell.write(f"{name}/compositions/p.yaml", "name: p\ncapabilities: [write]\n")
    folders = ("--from", str(shell.folder / "old"), "--to", str(shell.folder / "new"))
    change = shell.json("plan", *folders)["profiles"]["p"]
    assert (change["revoked"], change["review_added"]) == (["state:set"], ["write"])


def test_a_plan_shows_what_a_profile_would_start(shell: Shell, folders: tuple[Path, Path]) -> None:
    text = "name: p\nlauncher: {ready: claude, args: [-p, go on]}\n"
    shell.write("new/compositions/p.yaml", text)
    shell.write("old/compositions/p.yaml", "name: p\n")
    old, new = shell.json("plan", *between(folders))["profiles"]["p"]["launcher_changed"]
    assert (old, new["ready"], new["args"]) == (None, "claude", ["-p", "go on"])
    assert "  ~ starts: nothing → claude -p 'go on'" in shell.run("plan", *between(folders)).out


def test_a_plan_shows_which_tools_are_listed(shell: Shell) -> None:
    for name, shown in (("old", "true"), ("new", "false")):
        text = HELD_BACK.replace("REVIEW", "false").replace(
            "[state:get]", f"[state:get], mcp_tools: {shown}"
        )
        shell.write(f"{name}/capabilities.yaml", text)
    shell.write("old/compositions/p.yaml", "name: p\ncapabilities: [read, write]\n")
    shell.write("new/compositions/p.yaml", "name: p\ncapabilities: [read, write]\nexposure: turn\n")
    folders = ("--from", str(shell.folder / "old"), "--to", str(shell.folder / "new"))
    change = shell.json("plan", *folders)["profiles"]["p"]
    assert (change["exposure_changed"], change["tools_hidden"]) == (["all", "turn"], ["state:get"])
    text = shell.run("plan", *folders).out
    assert "  ~ exposure: all → turn" in text
    assert "  ~ state:get: is no tool any more" in text


def test_a_plan_shows_where_in_the_state_a_profile_may_work(shell: Shell) -> None:
    for name, prefixes in (("old", "[a/b/]"), ("new", "[a/]")):
        shell.write(f"{name}/capabilities.yaml", HELD_BACK.replace("REVIEW", "false"))
        shell.write(
            f"{name}/compositions/p.yaml",
            f"name: p\ncapabilities: [read]\nlimits: {{state_prefixes: {prefixes}}}\n",
        )
    folders = ("--from", str(shell.folder / "old"), "--to", str(shell.folder / "new"))
    change = shell.json("plan", *folders)["profiles"]["p"]
    assert change["limits_changed"] == {"state_prefixes": [["a/b/"], ["a/"]]}
    assert "  ~ state_prefixes: a/b/ → a/\n" in shell.run("plan", *folders).out
    new = ("--catalogue", str(shell.folder / "new" / "capabilities.yaml"))
    assert "limits: state_prefixes a/\n" in shell.run("resolve", "p", *new).out


def test_a_plan_of_a_broken_edit_is_refused_with_its_place(
    shell: Shell, folders: tuple[Path, Path]
) -> None:
    (folders[1] / "compositions" / "minimal.yaml").write_text("name: minimal\nextend: x\n")
    done = shell.run("plan", *between(folders))
    assert done.code == 2
    assert "new/compositions/minimal.yaml:2:1: " in done.err


def test_a_plan_without_a_daemon_says_what_to_compare(shell: Shell) -> None:
    done = shell.run("plan")
    assert done.code == 2
    assert "--from OLD --to NEW" in done.err


def test_a_removed_profile_loses_everything(shell: Shell, folders: tuple[Path, Path]) -> None:
    (folders[1] / "compositions" / "base_multi_agent.yaml").unlink()
    change = shell.json("plan", *between(folders))["profiles"]["base_multi_agent"]
    assert change["granted"] == []
    assert "system:health" in change["revoked"]


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
