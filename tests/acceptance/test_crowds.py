"""How many connections somebody gets, and who gets one when there are many."""

import socket as sockets
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from tests.acceptance.site import PATIENCE, Site, eventually

import remit_client.sync
from remit_client.errors import LimitExceeded
from remit_client.keys import Key


def test_a_client_gets_so_many_connections_and_one_more_when_another_ends(site: Site) -> None:
    site.configure(max_connections_per_key=3)
    with site.serving() as daemon, ExitStack() as stack:
        key = daemon.new_key("ann", "observer")

        def connect() -> remit_client.sync.Client:
            found = stack.enter_context(remit_client.sync.connect(home=daemon.home, key=key))
            found.call("system:health")
            return found

        with remit_client.sync.connect(home=daemon.home, key=key) as first:
            first.call("system:health")
            others = [connect(), connect()]
            with pytest.raises(LimitExceeded) as caught:
                connect()
            assert "max_connections_per_key" in caught.value.hint
            for one in (first, *others):
                one.call("system:health")
            with daemon.operator() as remit:
                assert remit.call("system:stats")["crowded"] > 0
        eventually(lambda: _is_let_in(connect), bool)
        with daemon.client("bob", "observer") as bob:
            bob.call("system:health")


def _is_let_in(connect: Callable[[], object]) -> bool:
    try:
        connect()
    except LimitExceeded:
        return False
    return True


def test_others_fill_all_places_and_none_of_the_operators(site: Site) -> None:
    site.configure(max_connections=2)
    with site.serving() as daemon, ExitStack() as stack:
        keys = [daemon.new_key(name, "observer") for name in ("ann", "bob", "cid")]

        def connect(key: Key) -> None:
            found = stack.enter_context(remit_client.sync.connect(home=daemon.home, key=key))
            found.call("system:health")

        connect(keys[0])
        connect(keys[1])
        with pytest.raises(LimitExceeded):
            connect(keys[2])
        with daemon.operator() as remit:
            assert remit.call("system:health")["status"]


def test_who_says_nothing_keeps_nobody_out(site: Site) -> None:
    with site.serving() as daemon, ExitStack() as stack:
        path = daemon.endpoint.removeprefix("ipc://")
        for _ in range(400):
            silent = stack.enter_context(sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM))
            silent.settimeout(10)
            silent.connect(path)
        with daemon.client("ann", "observer") as ann:
            ann.call("system:health")
        with daemon.operator() as remit:
            assert remit.call("system:stats")["crowded"] == 0


def test_the_operator_has_a_door_of_its_own_and_it_goes_with_the_daemon(site: Site) -> None:
    with site.serving() as daemon:
        door = site.home / "op.sock"
        assert door.is_socket()
        assert door.stat().st_mode & 0o777 == 0o600
        with daemon.operator() as remit:
            remit.call("system:health")
        assert not [path for path in site.home.iterdir() if path.name.startswith(".")]
    assert not door.exists()
    assert not (site.home / "remit.sock").exists()


def test_too_few_descriptors_are_refused_with_how_many_it_takes(site: Site) -> None:
    command = [sys.executable, "-m", "remit", "serve", "--home", str(site.home)]
    done = subprocess.run(  # noqa: S603 - our own command
        ["/bin/sh", "-c", 'ulimit -n 40; exec "$@"', "sh", *command],
        cwd=site.folder,
        env=site.environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "ulimit -n" in done.stderr
