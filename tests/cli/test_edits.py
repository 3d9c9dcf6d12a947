"""plan, reload and apply: what an edit changes, and putting it in force."""

from pathlib import Path

import pytest
from tests.cli.shell import Shell

from remit.cli.edits import _replace_all
from remit.errors import HomeError


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
        "trust_changed": [],
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


@pytest.mark.parametrize("command", [("reload",), ("apply", "--yes")])
def test_without_a_daemon_there_is_nobody_to_reload(shell: Shell, command: tuple[str, ...]) -> None:
    done = shell.run(*command)
    assert done.code in (2, 3)
    assert "daemon" in done.err


def test_the_shipped_definitions_are_not_replaced(shell: Shell) -> None:
    (shell.folder / "next").mkdir()
    done = shell.run("apply", "next", "--yes")
    assert done.code == 2
    assert "shipped" in done.err
    assert "--catalogue" in done.err


def test_apply_wants_a_folder_that_exists(shell: Shell) -> None:
    assert shell.run("apply", "nowhere", "--yes").code == 2


def folder(path: Path, text: str) -> Path:
    (path / "compositions").mkdir(parents=True)
    (path / "capabilities.yaml").write_text(text)
    (path / "compositions" / f"{text}.yaml").write_text(text)
    return path


def test_old_files_are_kept_in_a_folder_of_the_same_form(tmp_path: Path) -> None:
    now, new = folder(tmp_path / "now", "old"), folder(tmp_path / "new", "new")
    backup = _replace_all(new, now / "capabilities.yaml", now / "compositions")
    assert backup.parent == now
    for place, text in ((now, "new"), (backup, "old")):
        assert (place / "capabilities.yaml").read_text() == text
        assert [p.name for p in (place / "compositions").iterdir()] == [f"{text}.yaml"]
    assert (new / "compositions" / "new.yaml").exists(), "the new files are copied, not moved"


def test_a_replacement_that_fails_half_way_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, new = folder(tmp_path / "now", "old"), folder(tmp_path / "new", "new")
    real = Path.replace

    def replace(source: Path, target: Path) -> Path:
        if Path(target) == now / "capabilities.yaml":
            raise OSError(28, "No space left on device", str(source), None, str(target))
        return real(source, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(HomeError) as caught:
        _replace_all(new, now / "capabilities.yaml", now / "compositions")
    assert "No space left" in str(caught.value)
    assert (now / "capabilities.yaml").read_text() == "old"
    assert [path.name for path in (now / "compositions").iterdir()] == ["old.yaml"]
