"""Each route is the translation of an event."""

import json

import pytest
from tests.faces.http.world import served

from remit import __version__
from remit.faces.http.operations import OPERATIONS


async def test_any_event_is_called_under_its_name() -> None:
    async with served() as world:
        who = await world.headers()
        made = await world.call(who, "state:set", {"key": "a", "value": [1]})
        got = await world.call(who, "state:get", {"key": "a"})
        assert (made.status_code, got.status_code) == (200, 200)
        assert got.json()["value"] == [1]
        assert got.headers["remit-decision"]
        assert got.headers["remit-revision"] == "1"


@pytest.mark.parametrize("path", ["state:get", "state%3Aget", "state%3aget", "%73tate:get"])
async def test_an_event_may_be_written_with_percent_signs(path: str) -> None:
    async with served() as world:
        who = await world.headers()
        await world.call(who, "state:set", {"key": "a", "value": 7})
        answer = await world.http.post(f"/v1/events/{path}", json={"key": "a"}, headers=who)
        assert answer.json()["value"] == 7


async def test_an_old_name_of_an_event_works_too_and_an_empty_body_is_no_data() -> None:
    async with served() as world:
        answer = await world.http.post("/v1/events/system:health", headers=await world.headers())
        assert answer.json()["version"] == __version__


async def test_many_events_are_checked_at_once_in_the_order_asked() -> None:
    async with served() as world:
        await world.add("eve", "observer")
        asked = {"events": ["key:add", "system:health", "no:such"]}
        answer = await world.http.post("/v1/check", json=asked, headers=await world.headers("eve"))
        found = [(one["event"], one["allowed"]) for one in answer.json()["results"]]
        assert found == [("key:add", False), ("system:health", True), ("no:such", False)]


async def test_a_list_is_given_in_pages() -> None:
    async with served() as world:
        who = await world.headers()
        first = (await world.http.get("/v1/capabilities?limit=2", headers=who)).json()
        second = (
            await world.http.get(f"/v1/capabilities?after={first['next']}", headers=who)
        ).json()
        whole = (await world.http.get("/v1/capabilities?limit=1000", headers=who)).json()
        assert whole["items"] == [*first["items"], *second["items"]]
        assert whole["total"] == first["total"] == len(whole["items"])
        assert whole["next"] is None


async def test_one_capability_is_shown_and_a_wrong_name_is_answered_with_a_near_one() -> None:
    async with served() as world:
        who = await world.headers()
        found = await world.http.get("/v1/capabilities/state_read", headers=who)
        assert found.json()["events"] == ["state:get", "state:list"]
        missed = await world.http.get("/v1/capabilities/state_reed", headers=who)
        assert missed.status_code == 404
        assert missed.json()["hint"] == "did you mean 'state_read'?"


async def test_what_a_caller_may_not_use_is_answered_as_if_it_were_not_there() -> None:
    async with served() as world:
        await world.add("eve", "observer")
        who = await world.headers("eve")
        real = await world.call(who, "key:add", {"name": 5})
        made_up = await world.call(who, "key:adx", {"name": 5})
        assert (real.status_code, made_up.status_code) == (403, 403)
        strange = {"type", "code", "title", "status"}
        assert [real.json()[k] for k in strange] == [made_up.json()[k] for k in strange]
        assert real.json()["detail"].replace("add", "adx") == made_up.json()["detail"]
        hidden = await world.http.get("/v1/capabilities/key_management", headers=who)
        absent = await world.http.get("/v1/capabilities/key_managemenx", headers=who)
        assert (hidden.status_code, absent.status_code) == (404, 404)


async def test_the_same_answer_has_the_same_tag_and_is_not_sent_twice() -> None:
    async with served() as world:
        who = await world.headers()
        for path in ("/v1/capabilities", "/v1/capabilities/state_read", "/v1/agents"):
            first = await world.http.get(path, headers=who)
            tag = first.headers["etag"]
            for shown in (tag, f'"x", {tag}', f"W/{tag}", "*"):
                again = await world.http.get(path, headers=who | {"If-None-Match": shown})
                assert (again.status_code, again.content) == (304, b"")
                assert again.headers["etag"] == tag
            other = await world.http.get(path, headers=who | {"If-None-Match": '"x"'})
            assert (other.status_code, other.headers["etag"]) == (200, tag)


async def test_a_head_is_a_get_without_its_body() -> None:
    async with served() as world:
        who = await world.headers()
        get = await world.http.get("/v1/capabilities", headers=who)
        head = await world.http.head("/v1/capabilities", headers=who)
        assert head.content == b""
        assert head.headers["content-length"] == get.headers["content-length"]
        assert (head.status_code, head.headers["etag"]) == (200, get.headers["etag"])
        stream = await world.http.head("/v1/stream", headers=who)
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert world.face.stats.streams == 0


async def test_the_methods_of_a_path_are_told() -> None:
    async with served() as world:
        asked = await world.http.options("/v1/agents/bob")
        assert asked.status_code == 204
        assert asked.headers["allow"] == "DELETE, GET, HEAD, OPTIONS, PATCH"
        wrong = await world.http.put("/v1/check")
        assert (wrong.status_code, wrong.json()["code"]) == (405, "method_not_allowed")
        assert wrong.headers["allow"] == "OPTIONS, POST"


async def test_a_path_that_is_not_there_is_a_problem_like_any_other() -> None:
    async with served() as world:
        for path in ("/v2", "/v1/agents/a/b", "/v1/events/", "/v1/agents/..%2F..%2Fetc"):
            answer = await world.http.get(path)
            assert answer.headers["content-type"] == "application/problem+json", path
            assert answer.status_code in (404, 405), path


async def test_a_request_keeps_its_id_and_gets_one_if_it_has_none() -> None:
    async with served() as world:
        mine = await world.http.get("/healthz", headers={"X-Request-Id": "abc-1"})
        assert mine.headers["x-request-id"] == "abc-1"
        odd = await world.http.get("/nope", headers={"X-Request-Id": "a b"})
        assert odd.headers["x-request-id"] not in ("", "a b")
        assert odd.json()["request_id"] == odd.headers["x-request-id"]


async def test_a_session_is_named_in_a_header() -> None:
    async with served() as world:
        who = await world.headers()
        asked = {"session": "narrow", "disallowed_tools": ["state:set"]}
        assert (await world.call(who, "session:open", asked)).status_code == 200
        inside = who | {"Remit-Session": "narrow"}
        refused = await world.call(inside, "state:set", {"key": "a", "value": 1})
        assert (refused.status_code, refused.json()["code"]) == (403, "denied")
        assert (await world.call(who, "state:set", {"key": "a", "value": 1})).status_code == 200
        long = await world.call(who | {"Remit-Session": "x" * 201}, "system:health")
        assert long.status_code == 422


async def test_probes_are_open_and_tell_no_names() -> None:
    async with served() as world:
        assert (await world.http.get("/healthz")).json() == {"status": "ok"}
        assert (await world.http.get("/readyz")).status_code == 200
        world.problems.append("the store does not answer")
        broken = await world.http.get("/readyz")
        assert (broken.status_code, broken.json()["status"]) == (503, "not_ready")
        await world.call(await world.headers(), "state:list")
        numbers = (await world.http.get("/metrics")).text
        assert "remit_requests_total" in numbers
        assert "state:list" not in numbers


async def test_numbers_by_event_need_a_token_that_may_see_them() -> None:
    async with served() as world:
        who = await world.headers()
        await world.call(who, "state:list")
        full = await world.http.get("/metrics", headers=who)
        assert 'remit_event_calls_total{event="state:list"} 1.0' in full.text
        wrong = await world.http.get("/metrics", headers={"Authorization": "Bearer x"})
        assert wrong.status_code == 401


async def test_the_document_and_the_page_list_every_route_and_need_nothing_from_elsewhere() -> None:
    async with served() as world:
        document = (await world.http.get("/openapi.json")).json()
        page = await world.http.get("/")
        assert document["openapi"] == "3.1.0"
        listed = {(path, method) for path, one in document["paths"].items() for method in one}
        assert listed == {(one.path, one.method.lower()) for one in OPERATIONS}
        for one in OPERATIONS:
            assert one.path in page.text
        assert "http" not in page.text.replace("HTTP", "").replace("https://", "http")
        assert "script" not in page.text.replace("without a script", "").replace("description", "")
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "$ref" in json.dumps(document["components"])


async def test_other_pages_may_read_answers_only_if_they_are_named() -> None:
    origin = {"Origin": "https://app.example"}
    asked = origin | {"Access-Control-Request-Method": "POST"}
    async with served() as closed:
        answer = await closed.http.options("/v1/check", headers=asked)
        assert "access-control-allow-origin" not in answer.headers
    async with served(origins=("https://app.example",)) as opened:
        answer = await opened.http.options("/v1/check", headers=asked)
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        other = await opened.http.get("/healthz", headers={"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in other.headers
