"""Heads of HTTP requests that a real daemon refuses: two lengths, too many bytes, other hosts."""

import socket as sockets
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from tests.acceptance.site import PATIENCE, Daemon, Site, new_site


@pytest.fixture(scope="module")
def daemon() -> Generator[Daemon]:
    with new_site() as site:
        site.configure(http="127.0.0.1:0", http_hosts=["remit.example", "*.lan.example"])
        with site.serving() as daemon:
            yield daemon


def address(daemon: Daemon) -> tuple[str, int]:
    host, _, port = daemon.ready["endpoints"]["http"].removeprefix("http://").rpartition(":")
    return host, int(port)


@contextmanager
def connected(daemon: Daemon) -> Generator[sockets.socket]:
    with sockets.create_connection(address(daemon), PATIENCE) as connection:
        yield connection


def answers(daemon: Daemon, sent: bytes) -> bytes:
    """All that is answered until the other side closes."""
    with connected(daemon) as connection:
        connection.sendall(sent)
        parts = []
        try:
            while part := connection.recv(65_536):
                parts.append(part)
        except ConnectionResetError:
            pass
        return b"".join(parts)


def head(*lines: str, target: str = "/healthz", method: str = "GET", version: str = "1.1") -> bytes:
    return "\r\n".join([f"{method} {target} HTTP/{version}", *lines, "", ""]).encode("latin-1")


SMUGGLED = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    ("lines", "version", "body"),
    [
        (["Content-Length: 5", "Transfer-Encoding: chunked"], "1.1", b"0\r\n\r\n"),
        (["Transfer-Encoding: chunked", "Content-Length: 5"], "1.1", b"0\r\n\r\n"),
        (["Transfer-Encoding: chunked", "Content-Length: 0"], "1.1", b"0\r\n\r\n"),
        (["content-length: 48", "TRANSFER-ENCODING: chunked"], "1.1", b"0\r\n\r\n"),
        (["Transfer-Encoding: chunked"], "1.0", b"0\r\n\r\n"),
        (["Transfer-Encoding: gzip, chunked", "Content-Length: 5"], "1.1", b"0\r\n\r\n"),
        (["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], "1.1", b"0\r\n\r\n"),
        (["Content-Length: 5", "Content-Length: 6"], "1.1", b"12345"),
        (["Content-Length: +5"], "1.1", b"12345"),
        (["Transfer-Encoding: xchunked"], "1.1", b"0\r\n\r\n"),
        (["Transfer-Encoding : chunked"], "1.1", b"0\r\n\r\n"),
    ],
)
@pytest.mark.parametrize("target", ["/v1/check", "/mcp"])
def test_a_body_with_two_lengths_is_refused_and_nothing_behind_it_is_read(
    daemon: Daemon, target: str, lines: list[str], version: str, body: bytes
) -> None:
    sent = head("Host: localhost", *lines, target=target, method="POST", version=version)
    answer = answers(daemon, sent + body + SMUGGLED)
    assert answer.split(b" ", 2)[1] in (b"400", b"501")
    assert answer.count(b"HTTP/1.1 ") == 1, "what was smuggled in is answered"
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([f"X-A: {'a' * 20_000}"], id="one-long-line"),
        pytest.param([f"X-{n}: {'a' * 100}" for n in range(200)], id="many-lines"),
        pytest.param([f"X-{n}:" for n in range(3000)], id="very-many-empty-ones"),
        pytest.param([f"Cookie: {'a' * 60_000}"], id="nearly-as-much-as-is-read-at-once"),
    ],
)
def test_a_head_is_bounded_also_when_it_comes_at_once(daemon: Daemon, lines: list[str]) -> None:
    answer = answers(daemon, head("Host: localhost", *lines))
    assert answer.split(b" ", 2)[1] in (b"431", b"400")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b'"code":' in answer


def test_a_long_address_counts_as_a_part_of_the_head(daemon: Daemon) -> None:
    answer = answers(daemon, head("Host: localhost", target=f"/healthz?{'a' * 20_000}"))
    assert answer.startswith(b"HTTP/1.1 431 ")


def test_a_head_below_the_bound_is_served(daemon: Daemon) -> None:
    sent = head("Host: localhost", f"X-A: {'a' * 15_000}", "Connection: close")
    assert answers(daemon, sent).startswith(b"HTTP/1.1 200 ")


PATHS = ["/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/agents", "/mcp", "/nothing"]


@pytest.mark.parametrize("target", PATHS)
@pytest.mark.parametrize(
    "host",
    [
        ["Host: evil.example"],
        ["Host: evil.example:80"],
        ["Host: localhost.evil.example"],
        ["Host: 127.0.0.1.evil.example"],
        ["Host: 10.0.0.1"],
        ["Host: lan.example"],
        ["Host: xremit.example"],
        ["Host: localhost@evil.example"],
        ["Host: "],
        ["Host: local\xa0host"],
    ],
)
def test_who_asks_for_another_host_is_told_nothing(
    daemon: Daemon, target: str, host: list[str]
) -> None:
    answer = answers(daemon, head(*host, target=target))
    assert answer.split(b" ", 2)[1] in (b"421", b"400")
    assert b"remit_" not in answer
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST:7421", "127.0.0.1", "127.0.0.1:1", "[::1]", "localhost."),
        *("remit.example", "Remit.Example:443", "a.lan.example"),
    ],
)
def test_our_own_names_are_served(daemon: Daemon, host: str) -> None:
    answer = answers(daemon, head(f"Host: {host}", "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_an_address_is_no_name_of_another_server(site: Site) -> None:
    """Whoever listens on all addresses may be asked by any of them."""
    site.configure(http="0.0.0.0:0")
    with site.serving() as daemon:
        _, port = address(daemon)
        daemon.ready["endpoints"]["http"] = f"http://127.0.0.1:{port}"
        for host, status in (("192.0.2.7", b"200"), ("localhost", b"200"), ("evil.test", b"421")):
            answer = answers(daemon, head(f"Host: {host}", "Connection: close"))
            assert answer.split(b" ", 2)[1] == status, host


def test_metrics_need_a_token_unless_they_are_served_on_loopback(
    daemon: Daemon, site: Site
) -> None:
    asked = head("Host: localhost", "Connection: close", target="/metrics")
    assert answers(daemon, asked).startswith(b"HTTP/1.1 200 ")
    site.configure(http="0.0.0.0:0")
    with site.serving() as other, other.operator() as remit:
        _, port = address(other)
        other.ready["endpoints"]["http"] = f"http://127.0.0.1:{port}"
        assert answers(other, asked).startswith(b"HTTP/1.1 401 ")
        token = remit.call("key:token", {"name": "operator"})["token"]
        shown = head(
            "Host: localhost", f"Authorization: Bearer {token}", "Connection: close",
            target="/metrics",
        )  # fmt: skip
        assert b"remit_requests" in answers(other, shown)
