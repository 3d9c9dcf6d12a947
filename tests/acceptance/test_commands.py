"""The command line beside a running daemon: it asks the daemon, as the operator or as an agent."""

import json
import shlex
import subprocess
import sys

import pytest
from tests.acceptance.site import PATIENCE, Daemon, Site


@pytest.fixture(scope="module")
def site(daemon: Daemon) -> Site:
    daemon.new_key("bob", "observer")
    return daemon.site


def test_a_call_takes_pairs_json_or_standard_input(site: Site) -> None:
    site.answer("call", "state:set", "key=a", 'value={"n": [1, 2]}')
    assert site.answer("call", "state:get", "key=a")["value"] == {"n": [1, 2]}
    site.answer("call", "state:set", "--data", '{"key": "b", "value": "text"}')
    assert site.answer("call", "state:get", "--data", '{"key": "b"}')["value"] == "text"
    piped = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "remit", "call", "state:get", "--data", "-", "--home", site.home],
        input='{"key": "b"}',
        env=site.environment(),
        cwd=site.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert json.loads(piped.stdout)["value"] == "text"


def test_a_text_that_is_json_as_well_is_told_how_to_be_written(site: Site) -> None:
    wrong = site.run("call", "state:set", "key=5", "value=1")
    assert wrong.returncode == 2
    assert """hint: 5 is read as JSON; as text it is written key='"5"'""" in wrong.stderr
    assert site.answer("call", "state:set", 'key="5"', "value=1")["key"] == "5"
    for text in ("true", "null", '{"a": 1}'):
        other = site.run("call", "state:get", f"key={text}")
        assert f"as text it is written key={shlex.quote(json.dumps(text))}" in other.stderr
    assert "read as JSON" not in site.run("call", "agent:list", "limit=many").stderr


def test_a_failing_call_ends_by_what_went_wrong(site: Site) -> None:
    wrong = site.run("call", "state:get", "kee=a")
    assert wrong.returncode == 2
    assert "[invalid_data]" in wrong.stderr
    assert "did you mean 'key'?" in wrong.stderr
    unknown = site.run("call", "state:gett", "--json")
    assert unknown.returncode == 2
    assert json.loads(unknown.stdout)["error"]["code"] == "unknown_event"


def test_a_subject_may_be_an_agent(site: Site) -> None:
    assert site.answer("can", "bob", "state:get")["subject"] == "bob"
    assert site.run("can", "bob", "state:set").returncode == 1
    why = json.loads(site.run("why", "bob", "state:set", "--json").stdout)
    assert (why["subject"], why["reason"]) == ("bob", "no_grant")
    assert site.answer("can", "observer", "state:get")["subject"] == "observer"
    assert site.answer("who-can", "state:get")["agents"] == ["bob"]
    assert site.answer("who-can", "state:set")["agents"] == []
    tools = {tool["event"] for tool in site.answer("tools", "bob")["tools"]}
    assert "state:get" in tools
    assert "state:set" not in tools


def test_a_subject_that_is_neither_agent_nor_profile_is_a_typo(site: Site) -> None:
    done = site.run("can", "obsever", "state:get")
    assert done.returncode == 1
    assert "(unknown_agent)" in done.stdout
    assert "did you mean 'observer'?" in done.stderr


def test_an_agent_may_ask_about_itself_with_its_own_key(site: Site) -> None:
    made = site.answer("key", "new", "carol", "--profile", "observer", "--out", "carol.key")
    as_carol = {"REMIT_KEY": made["file"]}
    assert site.answer("can", "carol", "state:get", env=as_carol)["allowed"] is True
    assert site.run("can", "carol", "state:set", env=as_carol).returncode == 1
    assert site.answer("can", "observer", "state:get", env=as_carol)["allowed"] is True
    other = site.run("can", "bob", "state:get", env=as_carol)
    assert other.returncode == 2


def test_named_definitions_are_meant_even_when_a_daemon_runs(site: Site) -> None:
    other = site.folder / "other"
    (other / "compositions").mkdir(parents=True)
    (other / "capabilities.yaml").write_text("version: 1\ncapabilities: {}\n")
    files = ("--catalogue", "other/capabilities.yaml", "--compositions", "other/compositions")
    assert site.run("can", "bob", "state:get").returncode == 0
    done = site.run("can", "bob", "state:get", *files)
    assert done.returncode == 1  # the profile of bob is not among them
    assert f"source: {other}/capabilities.yaml" in done.stdout


def test_keys_are_made_once_and_listed(site: Site) -> None:
    site.answer("key", "new", "dora", "--profile", "observer")
    again = site.run("key", "new", "dora", "--profile", "observer")
    assert again.returncode == 1
    assert "exists already" in again.stderr
    wrong = site.run("key", "new", "eve", "--profile", "obsever")
    assert wrong.returncode == 2
    assert "did you mean 'observer'?" in wrong.stderr
    assert not (site.home / "keys" / "eve.key").exists()
    listed = site.run("key", "list").stdout
    assert "dora" in listed
    assert "observer" in listed


def test_doctor_asks_the_daemon_how_it_is(site: Site, daemon: Daemon) -> None:
    done = site.run("doctor")
    assert done.returncode == 0
    assert f"the daemon (pid {daemon.process.pid}) answers: ok" in done.stdout
