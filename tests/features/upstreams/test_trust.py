"""Whatever servers, operators and restarts do: only what was approved is ever called."""

import tempfile
from pathlib import Path
from typing import Any

import anyio
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.upstream_desk import OutsideDesk

from remit.features.upstreams.pins import read_pins
from remit.features.upstreams.service import Upstreams
from remit.model.principal import Cause
from remit.model.upstream import Upstream, UpstreamTool

FIND = UpstreamTool(name="find_it", description="Finds it.", input_schema={"type": "object"})
KEEP = UpstreamTool(name="keep_it", description="Keeps it.", input_schema={"type": "object"})


def other(tool: UpstreamTool, description: str = "Does more now.") -> UpstreamTool:
    return msgspec.structs.replace(tool, description=description)


VERSIONS = [FIND, other(FIND), other(FIND, "Yet another."), KEEP, other(KEEP)]
STEPS = st.one_of(
    st.tuples(st.just("lists"), st.sets(st.sampled_from(range(len(VERSIONS))), max_size=4)),
    st.tuples(st.just("decides"), st.sampled_from(["find_it", "keep_it"]), st.booleans()),
    st.tuples(st.just("moves"), st.sampled_from(["here", "there"])),
    st.tuples(st.just("keeps out"), st.sampled_from(["find_it", "keep_it", "nothing"])),
    st.just(("restarts",)),
)


@settings(max_examples=40, deadline=None)
@given(trust=st.sampled_from(["on_first_use", "review"]), steps=st.lists(STEPS, max_size=10))
def test_an_event_whose_definition_differs_from_the_approved_one_is_never_callable(
    trust: Any, steps: list[Any]
) -> None:
    anyio.run(_play, trust, steps)


async def _play(trust: Any, steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        start = Upstream(name="free", command="here", trust=trust)
        desk = OutsideDesk(Path(folder), start)
        desk.tools["free"] = []
        approved: dict[str, str] = {}
        waiting = list(steps)
        while waiting:
            async with desk.open():
                while waiting and (step := waiting.pop(0))[0] != "restarts":
                    await _step(desk, step, approved)
                    await _look(desk, approved)


async def _step(desk: OutsideDesk, step: Any, approved: dict[str, str]) -> None:
    upstream = desk.upstreams[0]
    if step[0] == "lists":
        tools = {VERSIONS[at].name: VERSIONS[at] for at in sorted(step[1])}
        desk.tools["free"][:] = tools.values()
        _first_use(desk, approved)
        await desk.refresh("free")
    elif step[0] == "decides":
        shown = {one["tool"]: one for one in await _shown(desk)}
        answer = await desk.answer(
            "review:decide",
            {"id": f"tool:free/{step[1]}", "decision": "approve" if step[2] else "reject"},
        )
        if answer.ok and step[2]:
            approved[step[1]] = shown[step[1]]["fingerprint"]
        elif answer.ok and shown[step[1]]["fingerprint"] == approved.get(step[1]):
            approved.pop(step[1], None)
    else:
        what = "command" if step[0] == "moves" else "exclude"
        value = step[1] if step[0] == "moves" else (step[1],)
        desk.upstreams = [msgspec.structs.replace(upstream, **{what: value})]
        _first_use(desk, approved)
        await desk.kernel.service(Upstreams).reload(Cause("requested"))


def _first_use(desk: OutsideDesk, approved: dict[str, str]) -> None:
    """What is let in and was never seen before is trusted as it is, if that is wanted."""
    [upstream] = desk.upstreams
    known = read_pins(desk.folder, ["free"]).known.get("free")
    if upstream.trust == "on_first_use":
        for tool in desk.tools["free"]:
            is_new = known is None or tool.name not in known.tools
            if is_new and tool.name not in upstream.exclude:
                approved[tool.name] = tool.fingerprint(upstream.origin)


async def _shown(desk: OutsideDesk) -> list[dict[str, Any]]:
    found = []
    for status in ("approved", "rejected", "pending"):
        found += (await desk.ask("review:list", {"kind": "tool", "status": status}))["items"]
    return found


async def _look(desk: OutsideDesk, approved: dict[str, str]) -> None:
    client = desk.links["free"]
    for tool in ("find_it", "keep_it"):
        client.calls.clear()
        await desk.answer(f"mcp:free:{tool}", {})
        if client.calls:
            listed = {one.name: one for one in desk.tools["free"]}
            origin = desk.upstreams[0].origin
            assert listed[tool].fingerprint(origin) == approved[tool]
