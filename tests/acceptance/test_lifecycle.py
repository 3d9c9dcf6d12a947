"""Starting and stopping: one daemon a home, nothing left behind, every refusal explained."""

import json
import signal

import pytest
from tests.acceptance.site import PATIENCE, Site

import remit_client.sync
from remit_client import Unreachable


def test_the_ready_line_says_where_it_listens(site: Site) -> None:
    with site.serving() as daemon:
        assert daemon.ready["ready"] is True
        assert daemon.endpoint == f"ipc://{site.home}/remit.sock"
        assert daemon.ready["home"] == str(site.home)
        assert daemon.ready["revision"] == 1
        assert (site.home / "endpoint").read_text().strip() == daemon.endpoint


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_daemon_ends_well_and_leaves_no_socket(site: Site, stop: signal.Signals) -> None:
    daemon = site.start()
    daemon.process.send_signal(stop)
    assert daemon.process.wait(PATIENCE) == 0
    daemon.kill()
    assert not (site.home / "remit.sock").exists()
    assert not (site.home / "endpoint").exists()
    with (
        pytest.raises(Unreachable, match=r"no daemon is running in .*home"),
        remit_client.sync.connect(home=site.home),
    ):
        pass


def test_a_second_daemon_on_the_same_home_is_refused(site: Site) -> None:
    with site.serving() as daemon:
        second = site.run("serve", "--json")
        assert second.returncode == 2
        assert f"a daemon already runs here (pid {daemon.process.pid})" in second.stderr
        assert "[unusable_home]" in second.stderr
        assert json.loads(second.stdout)["error"]["code"] == "unusable_home"
        with daemon.operator() as operator:
            assert operator.call("system:health")["status"] == "ok"


def test_what_a_killed_daemon_left_behind_is_cleared_away(site: Site) -> None:
    first = site.start()
    first.kill()
    assert (site.home / "remit.sock").exists()
    assert "left by a daemon that died" in site.run("doctor").stdout
    with site.serving() as second, second.operator() as operator:
        assert operator.call("system:health")["status"] == "ok"


def test_a_home_too_deep_for_a_socket_is_explained(site: Site) -> None:
    site.home = site.folder / ("deep" * 30)
    done = site.run("serve")
    assert done.returncode == 2
    assert "a socket's path may have" in done.stderr
    assert "--home" in done.stderr


def test_a_loose_home_is_tightened(site: Site) -> None:
    with site.serving():
        pass
    site.home.chmod(0o755)
    (site.home / "operator.key").chmod(0o644)
    with site.serving() as daemon:
        assert "home_repaired" in daemon.log()
        assert site.home.stat().st_mode & 0o777 == 0o700
        assert (site.home / "operator.key").stat().st_mode & 0o777 == 0o600


def test_definitions_that_do_not_compile_stop_the_start_with_every_mistake(site: Site) -> None:
    site.add_profile("typo", "capabilities: {state_rwite: true}\nextends: minmal\n")
    done = site.run("serve")
    assert done.returncode == 2
    assert "compositions/typo.yaml:2:16: " in done.stderr
    assert "compositions/typo.yaml:3:10: " in done.stderr
    assert "did you mean 'minimal'?" in done.stderr


def test_a_wrong_setting_stops_the_start_and_names_its_line(site: Site) -> None:
    site.configure(request_timeout="soon")
    done = site.run("serve")
    assert done.returncode == 2
    assert "remit.toml:3" in done.stderr
    assert "request_timeout" in done.stderr


def test_a_daemon_on_tcp_picks_its_port_and_tells_its_clients(site: Site) -> None:
    site.configure(endpoint="tcp://127.0.0.1:0")
    with site.serving() as daemon, daemon.operator() as operator:
        assert daemon.endpoint.startswith("tcp://127.0.0.1:")
        assert not daemon.endpoint.endswith(":0")
        assert operator.call("system:health")["status"] == "ok"


def test_a_start_logs_how_much_changed_and_not_every_change(site: Site) -> None:
    site.add_profile("clerk", "capabilities: [state_write]\n")
    with site.serving():
        pass
    site.log.unlink()
    site.add_profile("clerk", "capabilities: [state_read]\n")
    with site.serving() as daemon, daemon.operator() as operator:
        line = next(json.loads(row) for row in daemon.log().splitlines() if "config_changed" in row)
        assert (line["granted"], line["revoked"], line["profiles"]) == (0, 2, 1)
        assert "state:set" not in daemon.log()
        row = operator.call("audit:query", {"event": "config:changed"})["items"][-1]
        assert (row["details"]["cause"], row["details"]["profiles"]) == ("started", ["clerk"])
