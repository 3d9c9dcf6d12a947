"""web:web_fetch, as an agent calls it."""

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import msgspec
import pytest
from anyio.abc import ByteStream
from tests.fakes import Desk, texts
from tests.features.web.web_server import Server, moved, page, serving

from remit.features.web import page as page_text
from remit.features.web.events import OF_ONE_TREE, WebAccess
from remit.features.web.page import CONTENT_BYTES, LEFT_OUT
from remit.kernel.dispatch.registry import REGISTRY, load_handlers
from remit.model.paths import HostRules
from remit.model.principal import OPERATOR, Agent, AgentSpec, Principal

EVENT = "web:web_fetch"
MODULES = ("remit.features.web.events", "remit.features.audit.events")
CATALOGUE = f"""\
  network_access:
    {{description: Reach out, event_patterns: [{EVENT}], config_schema: {{type: object}}}}
"""
FIELDS = [
    "url",
    "status_code",
    "content_type",
    "size",
    "last_modified",
    "filename",
    "format",
    "content",
    "truncated",
    "error",
]
HTML = b"""<!doctype html><html><head><title>T</title><style>a{}</style></head><body>
<h1>Tides</h1><p>High at <b>noon</b>, see <a href="../more">more</a>.</p><script>evil()</script>
<ul><li>one<li>two</ul></body></html>"""


@pytest.fixture
async def server() -> AsyncGenerator[Server]:
    async with serving() as found:
        yield found


@pytest.fixture
def desk() -> Desk:
    files = texts(
        CATALOGUE,
        free="capabilities: [network_access]",
        fenced="capabilities: [{ref: network_access, config: {allow_hosts: ['*.example.com']}}]",
        local="capabilities: [{ref: network_access, config: {allow_hosts: ['127.0.0.1']}}]",
        denied="capabilities: [{ref: network_access, config: {deny_hosts: ['127.0.0.1']}}]",
        nothing="capabilities: [{ref: network_access, config: {allow_hosts: []}}]",
        misspelt="capabilities: [{ref: network_access, config: {allow_host: ['127.0.0.1']}}]",
        unreadable="capabilities: [{ref: network_access, config: {deny_hosts: ['http://x']}}]",
        none="capabilities: []",
    )
    assert load_handlers(MODULES, trusted=True) == ()
    found = REGISTRY.handlers().items()
    desk = Desk({name: one for name, one in found if one.module in MODULES}, files)
    desk.kernel.provide(WebAccess(private=True))
    return desk


async def fetch(desk: Desk, server: Server, path: str = "/", **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = await desk.ask("free", EVENT, {"url": server.url + path} | more)
    return found


async def refusal(desk: Desk, who: str, url: str) -> Any:
    answer = await desk.answer(who, EVENT, {"url": url})
    assert answer.error is not None
    return answer.error


async def test_a_page_comes_with_all_that_is_known_about_it(desk: Desk, server: Server) -> None:
    modified = "Wed, 21 Oct 2015 07:28:00 GMT"
    server.answers["/notes/today.txt"] = page(b"hello", last_modified=modified)
    found = await fetch(desk, server, "/notes/today.txt")
    assert list(found) == FIELDS
    assert found == {
        "url": f"{server.url}/notes/today.txt",
        "status_code": 200,
        "content_type": "text/plain",
        "size": 5,
        "last_modified": modified,
        "filename": "today.txt",
        "format": "raw",
        "content": "hello",
        "truncated": False,
        "error": None,
    }


async def test_html_becomes_markdown_or_text_when_it_is_asked_for(
    desk: Desk, server: Server
) -> None:
    server.answers["/a/b"] = page(HTML, "text/html; charset=utf-8")
    raw = await fetch(desk, server, "/a/b")
    assert (raw["format"], raw["content"]) == ("raw", HTML.decode())
    markdown = await fetch(desk, server, "/a/b", as_markdown=True, as_text=True)
    assert markdown["format"] == "markdown"
    assert markdown["content"].split("\n\n")[:2] == [
        "# Tides",
        f"High at **noon**, see [more]({server.url}/more).",
    ]
    text = await fetch(desk, server, "/a/b", as_text=True)
    assert text["format"] == "text"
    assert "High at noon, see more." in text["content"]
    assert "evil" not in markdown["content"] + text["content"]


async def test_what_is_no_html_is_not_converted(desk: Desk, server: Server) -> None:
    server.answers["/"] = page(b'{"a": "<b>"}', "application/json")
    found = await fetch(desk, server, as_markdown=True)
    assert (found["format"], found["content"]) == ("raw", '{"a": "<b>"}')


async def test_a_head_is_answered_without_content(desk: Desk, server: Server) -> None:
    server.answers["/"] = page(b"", "text/html", content_length="1234")
    found = await fetch(desk, server, method="HEAD")
    assert (found["status_code"], found["size"], found["content"]) == (200, 1234, None)
    assert server.asked[0].startswith(b"HEAD / ")


@pytest.mark.parametrize(
    ("kind", "body"),
    [("image/png", b"\x89PNG"), ("application/pdf", b"%PDF"), ("text/plain", b"\x7fELF\0\0")],
)
async def test_binary_content_is_described_and_not_sent(
    desk: Desk, server: Server, kind: str, body: bytes
) -> None:
    server.answers["/x"] = page(body, kind, content_disposition='attachment; filename="a/b.bin"')
    found = await fetch(desk, server, "/x", as_markdown=True)
    assert (found["status_code"], found["content"], found["format"]) == (200, None, None)
    assert (found["content_type"], found["size"], found["filename"]) == (kind, len(body), "b.bin")
    assert "binary content" in found["error"]


async def test_an_answer_of_404_is_an_answer(desk: Desk, server: Server) -> None:
    server.answers["/"] = page(b"gone", status=404)
    found = await fetch(desk, server)
    assert (found["status_code"], found["content"]) == (404, "gone")


async def test_a_silent_server_is_told_of_after_a_second(desk: Desk, server: Server) -> None:
    async def silent(stream: ByteStream) -> None:
        await anyio.sleep_forever()

    server.answers["/"] = silent
    with anyio.fail_after(10):
        error = await refusal(desk, "free", f"{server.url}/")
    assert (error.code, error.message) == (
        "fetch_failed",
        "server did not respond within 1 second",
    )


async def test_a_body_that_takes_too_long_ends_with_the_suffix(
    desk: Desk, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stops(stream: ByteStream) -> None:
        await stream.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nhalf a si\xe2\x82")
        await anyio.sleep_forever()

    from remit.features.web import fetch as fetching  # noqa: PLC0415 - only to make it less patient

    impatient = fetching.Bounds(body=0.2)
    monkeypatch.setattr(fetching, "Bounds", lambda: impatient)
    server.answers["/"] = stops
    with anyio.fail_after(10):
        found = await fetch(desk, server)
    assert found["content"] == "half a si[..more content timed out...]"
    assert found["truncated"] is True


@pytest.mark.parametrize("escaped", [b'"\\', b"\x01a"])
async def test_an_answer_fits_into_a_message_however_large_the_page(
    desk: Desk, server: Server, escaped: bytes
) -> None:
    server.answers["/"] = page(escaped * 1_000_000)
    found = await fetch(desk, server)
    assert found["size"] == 2_000_000
    assert found["truncated"] is True
    assert found["content"].endswith(LEFT_OUT)
    assert len(found["content"]) == CONTENT_BYTES + len(LEFT_OUT)
    assert len(msgspec.json.encode(found)) < 1 << 20


async def test_a_page_that_cannot_be_converted_comes_as_it_is(
    desk: Desk, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_text, "CONVERSION_SECONDS", 0.001)
    server.answers["/"] = page(HTML, "text/html")
    found = await fetch(desk, server, as_markdown=True)
    assert (found["format"], found["content"]) == ("raw", HTML.decode())
    assert "could not be converted" in found["error"]


async def test_a_page_that_needs_more_memory_than_there_is_harms_nobody(
    desk: Desk, server: Server
) -> None:
    server.answers["/"] = page(b"<p><font>" * 500_000, "text/html")
    found = await fetch(desk, server, as_markdown=True)
    assert found["format"] == "raw"
    assert "could not be converted" in found["error"]


# ---- who may fetch what ----


@pytest.mark.parametrize("who", ["fenced", "denied", "nothing", "misspelt", "unreadable"])
async def test_the_configuration_of_a_profile_says_which_hosts(
    desk: Desk, server: Server, who: str
) -> None:
    error = await refusal(desk, who, f"{server.url}/")
    assert (error.code, error.details["reason"]) == ("denied", "limit")
    assert server.asked == []


async def test_what_a_profile_allows_the_settings_may_deny(desk: Desk, server: Server) -> None:
    assert (await desk.answer("local", EVENT, {"url": server.url})).ok
    desk.kernel.provide(WebAccess(HostRules(deny_hosts=("127.0.0.1",)), private=True))
    for who in ("local", "operator"):
        assert (await refusal(desk, who, server.url)).code == "denied"


@pytest.mark.parametrize(("parent", "child"), [("fenced", "free"), ("free", "fenced")])
async def test_no_child_reaches_further_than_its_parent(
    desk: Desk, server: Server, parent: str, child: str
) -> None:
    fleet = desk.authority.fleet
    fleet.add(Agent(id="old", spec=AgentSpec(profile=parent)))
    fleet.add(Agent(id="young", spec=AgentSpec(profile=child), parent="old"))
    principal = fleet.principal("young")
    assert principal is not None
    answer = await desk.dispatcher.dispatch(principal, EVENT, {"url": server.url})
    assert answer.error is not None
    assert answer.error.code == "denied"
    assert server.asked == []


async def test_loopback_is_refused_and_the_attempt_is_in_the_audit(
    desk: Desk, server: Server
) -> None:
    desk.kernel.provide(WebAccess())
    server.answers["/"] = moved("http://127.0.0.1:8080/")
    error = await refusal(desk, "free", "http://127.0.0.1:8080/secret")
    assert (error.code, error.details["reason"]) == ("denied", "limit")
    assert "the setting web_fetch_private" in error.hint
    rows = await desk.ask("operator", "audit:query", {"event": EVENT})
    assert [(row["outcome"], row["details"]["url"]) for row in rows["items"]] == [
        ("denied", "http://127.0.0.1:8080/secret")
    ]


async def test_the_same_attempt_again_is_a_count_under_the_decision_it_is_answered_with(
    desk: Desk, server: Server
) -> None:
    desk.kernel.provide(WebAccess())
    urls = ["http://127.0.0.1:8080/a"] * 3 + ["http://127.0.0.1:8080/b"]
    answers = [await desk.answer("free", EVENT, {"url": url}) for url in urls]
    await desk.kernel.audit_log.denials.flush()
    rows = (await desk.ask("operator", "audit:query", {"event": EVENT}))["items"]
    found = sorted((row["details"]["url"][-1], row["count"]) for row in rows)
    assert found == [("a", 1), ("a", 2), ("b", 1)]
    assert {answer.decision for answer in answers} == {row["decision"] for row in rows}


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"url": ""},
        {"url": "file:///etc/passwd"},
        {"url": "http://x.test/", "method": "POST"},
        {"url": "http://x.test/", "private": True},
        {"url": "http://x.test/", "as_text": "yes"},
        {"url": 1},
    ],
)
async def test_requests_that_do_not_fit_are_refused(desk: Desk, data: dict[str, Any]) -> None:
    answer = await desk.answer("free", EVENT, data)
    assert answer.error is not None
    assert answer.error.code == "invalid_data"


async def test_one_tree_of_agents_cannot_take_all_places(desk: Desk, server: Server) -> None:
    began = anyio.Semaphore(0)

    async def silent(stream: ByteStream) -> None:
        await stream.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        began.release()
        await anyio.sleep_forever()

    server.answers["/"], server.answers["/quick"] = silent, page()
    principal = desk.principal("free")
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            for _ in range(OF_ONE_TREE):
                tasks.start_soon(_ask, desk, principal, f"{server.url}/")
            for _ in range(OF_ONE_TREE):
                await began.acquire()
            error = (await _ask(desk, principal, f"{server.url}/quick")).error
            assert (error.code, error.details["retry_after"]) == ("limit_exceeded", 1.0)
            assert (await _ask(desk, OPERATOR, f"{server.url}/quick")).ok
            tasks.cancel_scope.cancel()
    assert (await _ask(desk, principal, f"{server.url}/quick")).ok


async def _ask(desk: Desk, who: Principal, url: str) -> Any:
    return await desk.dispatcher.dispatch(who, EVENT, {"url": url})
