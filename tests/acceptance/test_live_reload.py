"""Edits come in force by themselves, bad ones do not, and everybody concerned is told."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.acceptance.site import PATIENCE, Site, eventually
from tests.acceptance.test_reload import BROKEN, WIDER, is_stale, revision

ROOT = Path(__file__).parents[2]


@pytest.fixture
def watched(site: Site) -> Site:
    site.configure(watch=True, watch_debounce_ms=20)
    return site


def test_an_edit_comes_in_force_by_itself(watched: Site) -> None:
    with watched.serving() as daemon, daemon.client("bob", "observer") as bob:
        watched.add_profile("observer", WIDER)
        eventually(lambda: bob.allowed("state:set"), bool)
        assert revision(bob) == 2


def test_a_bad_edit_is_noticed_by_itself_and_survives_a_restart_as_stale(watched: Site) -> None:
    with watched.serving() as daemon, daemon.client("bob", "observer") as bob:
        watched.add_profile("observer", BROKEN)
        eventually(lambda: is_stale(bob), bool)
    with watched.serving() as daemon, daemon.operator() as operator:
        assert (revision(operator), is_stale(operator)) == (1, True)
        check = {"event": "state:get", "agent": "bob"}
        assert operator.call("permission:check", check)["allowed"]
        watched.add_profile("observer", WIDER)
        eventually(lambda: is_stale(operator), lambda stale: not stale)
        assert revision(operator) == 2
    assert daemon.log().count("config_rejected") == 2


def test_numbers_grow_over_restarts_and_an_edit_in_between_is_logged(site: Site) -> None:
    with site.serving() as daemon:
        assert daemon.ready["revision"] == 1
    site.add_profile("observer", WIDER)
    with site.serving() as daemon:
        assert daemon.ready["revision"] == 2
        assert '"config_changed"' in daemon.log()
    with site.serving() as daemon:
        assert daemon.ready["revision"] == 2


def test_the_first_start_with_a_broken_file_ends_with_every_error(site: Site) -> None:
    site.add_profile("observer", BROKEN)
    site.add_profile("other", "capabilities: {nonsense: true}\n")
    done = site.run("serve")
    assert done.returncode == 2
    assert "state_rwite" in done.stderr
    assert "nonsense" in done.stderr


def test_those_concerned_are_told(site: Site) -> None:
    with (
        site.serving() as daemon,
        daemon.operator() as operator,
        daemon.client("bob", "observer") as bob,
        operator.subscribe("config:*") as changes,
        bob.subscribe("permission:changed") as mine,
    ):
        site.add_profile("observer", WIDER)
        operator.call("config:reload")
        change = next(iter(changes))
        assert (change.event, change.data["summary"]["agents"]) == ("config:changed", 1)
        told = next(iter(mine))
        assert "state:set" in told.data["gained"]
        assert told.data["revision"] == 2
        site.add_profile("observer", BROKEN)
        daemon.reload()
        rejected = next(iter(changes))
        assert rejected.event == "config:rejected"
        assert "state_rwite" in rejected.data["errors"][0]["message"]


def test_an_agent_hears_that_fewer_of_its_tools_are_listed_and_another_does_not(site: Site) -> None:
    listed = "capabilities: {state_read: true}\n"
    few = listed + "exposure: discovered\npinned: [state:get]\n"
    for name in ("clerk", "other"):
        site.add_profile(name, listed)
    with (
        site.serving() as daemon,
        daemon.operator() as operator,
        daemon.client("bob", "clerk") as bob,
        daemon.client("eve", "other") as eve,
        bob.subscribe("permission:changed") as bobs,
        eve.subscribe("permission:changed") as eves,
    ):
        site.add_profile("clerk", few)
        site.add_profile("other", listed + "pinned: [state:get]\n")
        planned = site.answer("plan")
        assert planned["profiles"]["clerk"]["exposure_changed"] == ["all", "discovered"]
        assert planned["profiles"]["other"]["pinned_added"] == ["state:get"]
        assert planned["summary"]["agents"] == 1
        operator.call("config:reload")
        data = next(iter(bobs)).data
        assert (data["exposure_changed"], data["pinned_added"]) == (
            ["all", "discovered"],
            ["state:get"],
        )
        assert not data["gained"] + data["lost"] + data["tools_shown"] + data["tools_hidden"]
        answer = bob.call("system:discover", {"level": "full", "format": "mcp"})
        assert (answer["exposure"], answer["searchable"]) == ("discovered", True)
        assert [tool["event"] for tool in answer["tools"] if tool["pinned"]] == ["state:get"]
        # Where all tools are listed a pin changes nothing: the first that she hears is the next.
        site.add_profile("other", few)
        operator.call("config:reload")
        first = next(iter(eves)).data
        assert (first["revision"], first["exposure_changed"]) == (3, ["all", "discovered"])
        resolved = operator.call("composition:resolve", {"profile": "other"})
        assert (resolved["exposure"], resolved["pinned"]) == ("discovered", ["state:get"])


def test_a_daemon_killed_in_the_middle_of_a_reload_starts_with_one_whole_definition(
    site: Site,
) -> None:
    """What was acknowledged is not taken back, and no number is given twice."""
    pair = (["state:get", "state:list"], ["state:delete", "state:set"])
    _write_pair(site, pair[0])
    acknowledged = 0
    for _ in range(4):
        daemon = site.start()
        try:
            with daemon.operator() as operator:
                held = operator.call("composition:resolve", {"profile": "pair"})["allowed_events"]
                assert [event for event in held if event.startswith("state:")] in pair
                assert daemon.ready["revision"] >= acknowledged
                for turn in (1, 0):
                    _write_pair(site, pair[turn])
                    acknowledged = operator.call("config:reload")["revision"]
            _write_pair(site, pair[1])
            daemon.reload()
        finally:
            daemon.kill()


def _write_pair(site: Site, events: list[str]) -> None:
    for name, event in zip(("left", "right"), events, strict=True):
        site.add_profile(name, f"additional_tools: [{event}]\n")
    site.add_profile("pair", "extends: [left, right]\n")


def test_reload_prints_the_plan_or_every_error(site: Site) -> None:
    with site.serving() as daemon:
        daemon.new_key("bob", "observer")
        site.add_profile("observer", WIDER)
        planned = site.answer("plan")
        done = site.answer("reload")
        assert done["profiles"] == planned["profiles"]
        assert planned["summary"]["agents"] == done["summary"]["agents"] == 1
        assert "nothing changed, revision 2" in site.run("reload").stdout
        site.add_profile("observer", BROKEN)
        site.add_profile("other", "capabilities: {nonsense: true}\n")
        refused = site.run("reload")
        assert refused.returncode == 2
        assert "state_rwite" in refused.stderr
        assert "nonsense" in refused.stderr


def test_a_plan_counts_a_deleted_file_whatever_its_name(site: Site) -> None:
    odd = site.compositions / "odd-name.yml"
    odd.write_text("name: helper\nextends: minimal\n", encoding="utf-8")
    with site.serving() as daemon:
        daemon.new_key("bob", "helper")
        folder = site.folder / "next"
        folder.mkdir()
        (folder / "capabilities.yaml").write_bytes(site.catalogue.read_bytes())
        odd.unlink()
        shutil.copytree(site.compositions, folder / "compositions")
        for report in (site.answer("plan"), site.answer("plan", "--to", str(folder))):
            assert "system:health" in report["profiles"]["helper"]["revoked"]
            assert report["summary"]["profiles"] == 1
            assert report["summary"]["agents"] == 1
            assert report["agents"]["bob"]["profile_removed"]
            assert report["agents"]["bob"]["revoked"] == []  # what everybody has stays


def test_apply_replaces_the_files_and_the_backup_can_be_applied(site: Site) -> None:
    folder = site.folder / "next"
    (folder / "compositions").mkdir(parents=True)
    (folder / "capabilities.yaml").write_bytes(site.catalogue.read_bytes())
    (folder / "compositions" / "only.yaml").write_text("name: only\ncapabilities: [state_read]\n")
    before = sorted(path.name for path in site.compositions.iterdir())
    with site.serving() as daemon, daemon.operator() as operator:
        asked = site.run("apply", str(folder))
        assert (asked.returncode, revision(operator)) == (2, 1)
        assert "--yes" in asked.stderr
        done = site.answer("apply", str(folder), "--yes")
        assert (done["revision"], revision(operator)) == (2, 2)
        assert [path.name for path in site.compositions.iterdir()] == ["only.yaml"]
        assert done["profiles"]["only"]["granted"]
        back = site.answer("apply", done["backup"], "--yes")
        assert back["revision"] == 3
        assert sorted(path.name for path in site.compositions.iterdir()) == before


def test_apply_refuses_a_folder_with_mistakes_and_touches_nothing(site: Site) -> None:
    folder = site.folder / "next"
    (folder / "compositions").mkdir(parents=True)
    (folder / "capabilities.yaml").write_bytes(site.catalogue.read_bytes())
    (folder / "compositions" / "only.yaml").write_text("name: only\ncapabilities: [nonsense]\n")
    with site.serving() as daemon, daemon.operator() as operator:
        refused = site.run("apply", str(folder), "--yes")
        assert refused.returncode == 2
        assert "only.yaml:2:" in refused.stderr
        assert revision(operator) == 1
    assert not list(site.folder.glob("remit-backup-*"))


def test_apply_without_a_folder_puts_edits_in_place_in_force(site: Site) -> None:
    with site.serving():
        site.add_profile("observer", WIDER)
        done = site.answer("apply", "--yes")
        assert (done["revision"], done["backup"]) == (2, None)
        assert "observer" in done["profiles"]


def test_reload_is_for_those_who_administer_the_configuration(site: Site) -> None:
    site.add_profile("greedy", 'operator: true\nadditional_tools: ["*"]\n')
    with site.serving() as daemon, daemon.client("eve", "greedy") as eve:
        assert not eve.allowed("config:reload")
        assert not eve.allowed("config:changed")


def test_reloads_under_load_drop_nothing_and_mix_nothing(site: Site) -> None:
    done = subprocess.run(  # noqa: S603 - our own drill
        [sys.executable, str(ROOT / "tools" / "drills" / "reload.py"), "--reloads", "30"],
        env=site.environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE * 4,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert (figures["dropped"], figures["mixed"]) == (0, 0)
    assert figures["rejected"] > 0
    assert figures["answered"] > figures["reloads"]
