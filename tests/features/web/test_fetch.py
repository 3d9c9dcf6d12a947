"""Fetching from hosts that mean no good: where it may go, how long it waits, how much it takes."""

import gzip
import zlib

import anyio
import pytest
from anyio.abc import ByteStream
from tests.features.web.web_server import PUBLIC, Names, Outside, moved, nearby, page, serving

from remit.errors import DeniedError, FetchError, InvalidDataError, RemitError
from remit.features.web.fetch import CHUNKS, REDIRECTS
from remit.model.paths import HostRules

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"


async def refused(outside: Outside, url: str, *rules: HostRules) -> RemitError:
    with pytest.raises(RemitError) as caught:
        await outside.fetcher(*rules).fetch(url)
    return caught.value


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("file:///etc/passwd", id="file"),
        pytest.param("ftp://example.com/", id="ftp"),
        pytest.param("gopher://127.0.0.1:70/_x", id="gopher"),
        pytest.param("javascript:alert(1)", id="javascript"),
        pytest.param("data:text/plain,hello", id="data"),
        pytest.param("//example.com/", id="no-scheme"),
        pytest.param("example.com", id="no-scheme-at-all"),
        pytest.param("http:///path", id="no-host"),
        pytest.param("http://", id="nothing"),
        pytest.param("http://user@example.com/", id="user"),
        pytest.param("http://user:password@example.com/", id="password"),
        pytest.param("http://@example.com/", id="empty-user"),
        pytest.param("http://example.com\\@127.0.0.1/", id="backslash"),
        pytest.param("http://example.com/\r\nHost: x", id="line-break"),
        pytest.param(" http://example.com/", id="blank"),
        pytest.param("http://exa mple.com/", id="blank-in-host"),
        pytest.param("http://%31%32%37.0.0.1/", id="percent-host"),
        pytest.param("http://example..com/", id="empty-label"),
        pytest.param("http://" + "a" * 254 + "/", id="long-host"),
        pytest.param("http://example.com/" + "a" * 5000, id="long"),
        pytest.param("http://[fe80::1%25eth0]/", id="zone"),
        pytest.param("http://2130706433/", id="decimal"),
        pytest.param("http://0x7f000001/", id="hex"),
        pytest.param("http://0177.0.0.1/", id="octal"),
        pytest.param("http://127.1/", id="short"),
        pytest.param("http://0x7f.1/", id="mixed"),
        pytest.param("http://127.0.0.1.:80.5/", id="no-port"),
        pytest.param("http://example.com:22/", id="ssh"),
        pytest.param("http://example.com:6379/", id="redis"),
        pytest.param("http://example.com:0/", id="port-0"),
        pytest.param("http://example.com:99999/", id="port-too-large"),
    ],
)
async def test_a_url_that_is_made_to_deceive_is_refused_before_anybody_is_asked(url: str) -> None:
    async with serving() as server:
        outside = Outside(server)
        error = await refused(outside, url)
        assert isinstance(error, InvalidDataError)
        assert (outside.names.asked, outside.detour.dialled) == ([], [])


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104 - it must be refused
        "224.0.0.1",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[2001:0:4136:e378:8000:63bf:80ff:fffe]",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "127\u30020\u30020\u30021",
        "\uff11\uff12\uff17.0.0.1",
    ],
)
async def test_an_address_that_is_not_public_is_refused_before_it_is_dialled(host: str) -> None:
    async with serving() as server:
        outside = Outside(server)
        error = await refused(outside, f"http://{host}/")
        assert isinstance(error, DeniedError | InvalidDataError)
        assert outside.detour.dialled == []


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["::1"], [PUBLIC, "10.0.0.1"], ["10.0.0.1", PUBLIC], ["fe80::1%eth0"], ["?"]],
)
async def test_a_name_with_any_address_that_is_not_public_is_refused(addresses: list[str]) -> None:
    async with serving() as server:
        outside = Outside(server, Names(evil_test=[addresses]))
        error = await refused(outside, "http://evil.test/")
        assert isinstance(error, DeniedError)
        assert not any(address in error.message for address in addresses)
        assert outside.detour.dialled == []


async def test_a_name_is_resolved_once_and_that_very_address_is_dialled() -> None:
    async with serving({"/": page()}) as server:
        names = Names(evil_test=[[PUBLIC], ["127.0.0.1"], ["127.0.0.1"]])
        outside = Outside(server, names)
        fetched = await outside.fetcher().fetch("http://evil.test/")
        assert fetched.body == b"hello"
        assert names.asked == ["evil.test"]
        assert outside.detour.dialled == [PUBLIC]
        assert b"host: evil.test" in server.asked[0].lower()


async def test_a_name_that_leads_home_at_the_second_hop_is_refused_there() -> None:
    async with serving({"/": moved("http://evil.test/again")}) as server:
        outside = Outside(server, Names(evil_test=[[PUBLIC], ["127.0.0.1"]]))
        assert isinstance(await refused(outside, "http://evil.test/"), DeniedError)
        assert outside.detour.dialled == [PUBLIC]


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "//10.0.0.1/",
        "file:///etc/passwd",
        "http://user@example.com/",
        "http://example.com:25/",
        "http://2130706433/",
        "http://[::1]/",
        "http://",
        "\\\\127.0.0.1\\x",
        "http://\uff11\uff12\uff17.0.0.1/",
    ],
)
async def test_a_redirect_to_where_nobody_may_go_ends_there(location: str) -> None:
    answer = page(b"", status=302).replace(
        b"\r\n\r\n", b"\r\nlocation: " + location.encode() + b"\r\n\r\n"
    )
    async with serving({"/": answer}) as server:
        outside = Outside(server)
        error = await refused(outside, "http://example.com/")
        assert isinstance(error, DeniedError | FetchError)
        assert set(outside.detour.dialled) == {PUBLIC}


async def test_redirects_are_followed_five_times_and_no_more() -> None:
    chain = {f"/{at}": moved(f"{at + 1}") for at in range(10)}
    async with serving(chain | {"/end": page()}) as server:
        outside = Outside(server)
        error = await refused(outside, "http://example.com/0")
        assert error.details == {"reason": "redirect"}
        assert len(server.asked) == REDIRECTS + 1
        server.answers["/5"] = page(b"there")
        fetched = await outside.fetcher().fetch("http://example.com/0")
        assert (fetched.url, fetched.body) == ("http://example.com/5", b"there")


async def test_no_cookie_that_was_set_is_sent_and_the_agent_has_one_name() -> None:
    async with serving(
        {"/": page(b"", status=302, location="/b", set_cookie="a=b"), "/b": page()}
    ) as server:
        await Outside(server).fetcher().fetch("http://example.com/#part")
        for asked in server.asked:
            assert b"cookie" not in asked.lower()
            assert b"\r\nUser-Agent: remit/" in asked
            assert b"part" not in asked


async def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with serving({"/": page()}) as server:
        assert (await nearby().fetch(f"{server.url}/")).body == b"hello"


# ---- rules about hosts ----


@pytest.mark.parametrize(
    ("rules", "url", "allowed"),
    [
        (HostRules(allow_hosts=("example.com",)), "http://example.com/", True),
        (HostRules(allow_hosts=("example.com",)), "http://EXAMPLE.com./", True),
        (HostRules(allow_hosts=("example.com",)), "http://sub.example.com/", False),
        (HostRules(allow_hosts=("*.example.com",)), "http://sub.example.com/", True),
        (HostRules(allow_hosts=("*.example.com",)), "http://example.com/", False),
        (HostRules(allow_hosts=("*.example.com",)), "http://evilexample.com/", False),
        (HostRules(allow_hosts=("example.com",)), f"http://{PUBLIC}/", False),
        (HostRules(allow_hosts=()), "http://example.com/", False),
        (HostRules(deny_hosts=("example.com",)), "http://example.com/", False),
        (HostRules(deny_hosts=("example.com",)), "http://example.com./", False),
        (HostRules(("example.com",), ("example.com",)), "http://example.com/", False),
        (HostRules(deny_hosts=("xn--fa-hia.de",)), "http://fa\u00df.de/", False),
        (HostRules(), "http://example.com/", True),
    ],
)
async def test_rules_say_which_hosts_are_asked(
    rules: HostRules, url: str, *, allowed: bool
) -> None:
    async with serving({"/": page()}) as server:
        for fetcher in (Outside(server).fetcher(rules), Outside(server).fetcher(hosts=rules)):
            if allowed:
                assert (await fetcher.fetch(url)).body == b"hello"
            else:
                with pytest.raises(DeniedError):
                    await fetcher.fetch(url)


async def test_rules_hold_at_every_hop() -> None:
    async with serving({"/": moved("http://other.com/")}) as server:
        rules = HostRules(allow_hosts=("example.com",))
        assert isinstance(await refused(Outside(server), "http://example.com/", rules), DeniedError)
        assert len(server.asked) == 1


# ---- time and size ----


async def silent(stream: ByteStream) -> None:
    await anyio.sleep_forever()


async def drip(stream: ByteStream) -> None:
    await stream.send(HEAD)
    for at in range(1000):
        await stream.send(f"x-{at}: y\r\n".encode())
        await anyio.sleep(0.005)


async def informs(stream: ByteStream) -> None:
    while True:
        await stream.send(b"HTTP/1.1 103 Early Hints\r\n\r\n")


async def endless_header(stream: ByteStream) -> None:
    await stream.send(HEAD + b"x: ")
    while True:
        await stream.send(b"y" * 65536)


async def endless(stream: ByteStream) -> None:
    await stream.send(HEAD + b"\r\n")
    while True:
        await stream.send(b"word " * 10_000)


async def stops(stream: ByteStream) -> None:
    await stream.send(HEAD + b"content-length: 100\r\n\r\nthe first part")
    await anyio.sleep_forever()


@pytest.mark.parametrize("play", [silent, drip, informs, endless_header])
async def test_a_server_without_a_head_in_time_is_given_up(play: object) -> None:
    async with serving({"/": play}) as server:  # type: ignore[dict-item]
        with anyio.fail_after(5), pytest.raises(FetchError) as caught:
            await nearby(first_byte=0.2).fetch(f"{server.url}/")
        assert caught.value.details["reason"] in {"timeout", "protocol"}


async def test_what_came_before_the_time_was_up_is_kept() -> None:
    async with serving({"/": stops}) as server:
        with anyio.fail_after(5):
            fetched = await nearby(body=0.2).fetch(f"{server.url}/")
        assert (fetched.body, fetched.cut) == (b"the first part", "time")


async def test_an_endless_body_is_cut_at_the_limit() -> None:
    async with serving({"/": endless}) as server:
        with anyio.fail_after(5):
            fetched = await nearby(size=1000).fetch(f"{server.url}/")
        assert (len(fetched.body or b""), fetched.cut) == (1000, "size")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "x-gzip", "raw"])
async def test_compressed_bodies_are_read_and_bombs_stop_at_the_limit(encoding: str) -> None:
    def packed(data: bytes) -> bytes:
        wbits = {"deflate": 15, "raw": -15}.get(encoding, 31)
        packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
        return packer.compress(data) + packer.flush()

    name = "deflate" if encoding == "raw" else encoding
    async with serving(
        {
            "/": page(packed(b"small"), content_encoding=name),
            "/bomb": page(packed(b"0" * 5_000_000), content_encoding=name),
            "/cut": page(packed(bytes(range(256)) * 4)[:-4], content_encoding=name),
        }
    ) as server:
        fetch = nearby(size=10_000).fetch
        assert (await fetch(f"{server.url}/")).body == b"small"
        bomb = await fetch(f"{server.url}/bomb")
        assert (len(bomb.body or b""), bomb.cut) == (10_000, "size")
        assert (await fetch(f"{server.url}/cut")).cut == "broken"


async def test_a_body_in_tiny_pieces_is_cut_before_it_becomes_dear() -> None:
    async def crumbs(stream: ByteStream) -> None:
        await stream.send(HEAD + b"transfer-encoding: chunked\r\n\r\n")
        while True:
            await stream.send(b"1\r\nx\r\n" * 10_000)

    async with serving({"/": crumbs}) as server:
        with anyio.fail_after(20):
            fetched = await nearby().fetch(f"{server.url}/")
        assert fetched.cut == "size"
        assert len(fetched.body or b"") <= CHUNKS + 1


async def test_compressed_data_that_never_become_text_are_counted() -> None:
    async def empty_blocks(stream: ByteStream) -> None:
        packer = zlib.compressobj(wbits=31)
        await stream.send(HEAD + b"content-encoding: gzip\r\n\r\n" + packer.compress(b"x"))
        while True:
            await stream.send(packer.flush(zlib.Z_SYNC_FLUSH) + b"\0\0\0\xff\xff" * 1000)

    async with serving({"/": empty_blocks}) as server:
        with anyio.fail_after(5):
            fetched = await nearby(size=50_000).fetch(f"{server.url}/")
        assert fetched.cut in {"size", "broken"}


async def test_an_encoding_that_nobody_asked_for_is_not_read() -> None:
    async with serving({"/": page(b"\x1b...", content_encoding="br")}) as server:
        assert (await nearby().fetch(f"{server.url}/")).body is None
        assert b"Accept-Encoding: gzip, deflate\r\n" in server.asked[0]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"hello\n", id="http-0.9"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01", id="tls"),
        pytest.param(b"SSH-2.0-OpenSSH_9.0\r\n", id="ssh"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 999999 x\r\n\r\n", id="status"),
        pytest.param(b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", id="header"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", id="negative-length"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 1, 2\r\n\r\n", id="two-lengths"),
        pytest.param(b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n", id="another-protocol"),
    ],
)
async def test_what_is_not_http_is_a_failure_and_no_exception_of_a_library(answer: bytes) -> None:
    async with serving({"/": answer}) as server:
        with anyio.fail_after(5):
            with pytest.raises(FetchError) as caught:
                await nearby(first_byte=0.5).fetch(f"{server.url}/")
        assert caught.value.details["reason"] in {"protocol", "connection", "timeout"}


@pytest.mark.parametrize(
    ("rest", "body"),
    [
        (b"content-length: 50\r\n\r\nshort", b"short"),
        (b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\nZZZ\r\n", b"hello"),
        (b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\nfffffffffffff\r\nx", b"hellox"),
        (b"content-length: 5\r\n\r\nhello and more that was not announced", b"hello"),
    ],
)
async def test_a_body_that_is_not_as_long_as_it_says_is_kept_as_far_as_it_goes(
    rest: bytes, body: bytes
) -> None:
    async with serving({"/": HEAD + rest}) as server:
        fetched = await nearby().fetch(f"{server.url}/")
        assert fetched.body == body
        assert fetched.cut == ("" if rest.startswith(b"content-length: 5\r") else "broken")


async def test_nobody_there_is_a_failure(free_port: int) -> None:
    with pytest.raises(FetchError) as caught:
        await nearby().fetch(f"http://127.0.0.1:{free_port}/")
    assert caught.value.details == {"reason": "connection"}


@pytest.fixture
async def free_port() -> int:
    async with serving() as server:
        return server.port


async def test_a_name_that_nobody_knows_is_a_failure() -> None:
    async def unknown(host: str, port: int) -> list[str]:
        raise OSError("not known")

    async with serving() as server:
        outside = Outside(server)
        outside.names = unknown  # type: ignore[assignment]
        error = await refused(outside, "http://nowhere.test/")
        assert error.details == {"reason": "dns"}


async def test_a_cut_of_gzip_in_the_middle_keeps_what_was_there() -> None:
    whole = gzip.compress(b"".join(f"line {at}\n".encode() for at in range(5000)))

    async def half(stream: ByteStream) -> None:
        await stream.send(HEAD + b"content-encoding: gzip\r\n\r\n" + whole[: len(whole) // 2])
        await anyio.sleep_forever()

    async with serving({"/": half}) as server:
        with anyio.fail_after(5):
            fetched = await nearby(body=0.2).fetch(f"{server.url}/")
        assert fetched.cut == "time"
        assert (fetched.body or b"").startswith(b"line 0\nline 1\n")
