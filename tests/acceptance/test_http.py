"""HTTP of a real daemon: on a free port, beside the socket, until SIGTERM."""

import json
import socket
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.acceptance.site import PATIENCE, Daemon, Site, new_site

from remit_client.keys import new_key


@pytest.fixture
def site() -> Generator[Site]:
    with new_site() as found:
        found.configure(http="127.0.0.1:0")
        yield found


def client(daemon: Daemon, name: str | None = None) -> httpx.Client:
    with daemon.operator() as operator:
        made = operator.call("key:token", {} if name is None else {"name": name})
    headers = {"Authorization": f"Bearer {made['token']}"}
    return httpx.Client(
        base_url=daemon.ready["endpoints"]["http"], headers=headers, timeout=PATIENCE
    )


def test_without_the_setting_nothing_of_it_is_there() -> None:
    with new_site() as site, site.serving() as daemon:
        assert set(daemon.ready["endpoints"]) == {"zmq"}
        loaded = Path(f"/proc/{daemon.process.pid}/maps").read_text(encoding="utf-8")
        assert "multidict" not in loaded  # a compiled part of Litestar


def test_a_socket_and_http_are_two_ways_to_the_same_daemon(site: Site) -> None:
    with site.serving() as daemon, client(daemon) as http, daemon.operator() as operator:
        set_ = http.post("/v1/events/state:set", json={"key": "a", "value": 5})
        assert set_.status_code == 200
        assert operator.call("state:get", {"key": "a"})["value"] == 5
        assert http.get("/readyz").json() == {"status": "ready", "problems": []}


def test_tokens_outlive_a_restart_and_those_of_revoked_clients_do_not(site: Site) -> None:
    key = new_key("eve")
    with site.serving() as daemon, daemon.operator() as operator:
        data = {"name": "eve", "public_key": key.public_key, "profile": "observer"}
        operator.call("key:add", data)
        token = operator.call("key:token", {"name": "eve"})["token"]
        mine = operator.call("key:token")["token"]
    assert token.encode() not in b"".join(
        path.read_bytes() for path in site.home.rglob("*") if path.is_file()
    )
    with site.serving() as daemon:
        url = daemon.ready["endpoints"]["http"]
        who = {"Authorization": f"Bearer {token}"}
        assert httpx.post(f"{url}/v1/events/system:health", headers=who).status_code == 200
        with daemon.operator() as operator:
            operator.call("key:revoke", {"name": "eve"})
        assert httpx.post(f"{url}/v1/events/system:health", headers=who).status_code == 401
        own = {"Authorization": f"Bearer {mine}"}
        assert httpx.get(f"{url}/v1/agents", headers=own).status_code == 200


def test_a_stream_hears_what_a_socket_publishes_and_is_cut_with_its_token(site: Site) -> None:
    with site.serving() as daemon, client(daemon) as http, daemon.operator() as operator:
        with http.stream("GET", "/v1/stream?channel=news") as stream:
            lines = stream.iter_lines()
            assert operator.call("message:publish", {"channel": "news", "data": 1}) == {
                "delivered": 1
            }
            data = next(line for line in lines if line.startswith("data: "))
            assert json.loads(data[6:])["data"] == {"channel": "news", "data": 1}
            (token,) = operator.call("key:tokens")["items"]
            operator.call("key:revoke_token", {"id": token["id"]})
            assert not [line for line in lines if line.startswith("data: ")]
        assert http.get("/v1/agents").status_code == 401


def test_a_stop_ends_streams_and_idle_connections_in_time(site: Site) -> None:
    with site.serving() as daemon, client(daemon) as http:
        url = httpx.URL(daemon.ready["endpoints"]["http"])
        assert url.port is not None
        with (
            socket.create_connection((url.host, url.port)) as idle,
            http.stream("GET", "/v1/stream") as stream,
        ):
            ended: list[Any] = []

            def read() -> None:
                try:
                    ended.extend(stream.iter_lines())
                except httpx.HTTPError as error:
                    ended.append(error)

            reader = threading.Thread(target=read)
            reader.start()
            daemon.stop()
            reader.join(PATIENCE)
            assert not reader.is_alive()
            idle.settimeout(PATIENCE)
            assert idle.recv(1) == b""


def test_stale_definitions_are_told_to_probes(site: Site) -> None:
    with site.serving() as daemon, client(daemon) as http:
        site.catalogue.write_text("version: 1\ncapabilities: [", encoding="utf-8")
        http.post("/v1/events/config:reload")
        broken = http.get("/readyz")
        assert broken.status_code == 503
        assert "definitions" in broken.json()["problems"][0]
        assert http.get("/healthz").status_code == 200


def test_an_address_that_is_taken_is_told_and_the_daemon_does_not_start() -> None:
    with new_site() as site, socket.create_server(("127.0.0.1", 0)) as taken:
        site.configure(http=f"127.0.0.1:{taken.getsockname()[1]}")
        done = site.run("serve", "--json")
        assert done.returncode != 0
        assert "http cannot be served" in done.stdout + done.stderr


def test_the_commands_make_list_and_revoke_tokens(site: Site) -> None:
    with site.serving() as daemon:
        url = daemon.ready["endpoints"]["http"]
        printed = site.run("key", "token", "--expires-in", "60").stdout.split()[0]
        who = {"Authorization": f"Bearer {printed}"}
        assert httpx.get(f"{url}/v1/agents", headers=who).status_code == 200
        (listed,) = site.answer("key", "tokens")["items"]
        assert listed["id"] in site.run("key", "tokens").stdout
        assert site.answer("key", "revoke-token", listed["id"])["id"] == listed["id"]
        assert httpx.get(f"{url}/v1/agents", headers=who).status_code == 401
        missing = site.run("key", "revoke-token", listed["id"])
        assert missing.returncode != 0
        wrong = site.run("key", "token", "nobody")
        assert "nobody" in wrong.stderr
