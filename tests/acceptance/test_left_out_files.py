"""Skills, manifests and cards that cannot be used: in the log once, and never offered."""

from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.site import Daemon, Site, eventually
from tests.acceptance.test_mcp import ERAS, host

MANIFEST = "name: {name}\nkind: tool\ndescription: Fold paper birds for a party\n"


def put(site: Site, path: str, text: str) -> Path:
    file = site.folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def break_all(site: Site) -> list[Path]:
    """Put a broken file of each kind where the daemon reads them."""
    return [
        put(site, ".remit/capabilities/words/SKILL.md", "no frontmatter\n"),
        put(site, ".remit/capabilities/folds/CAPABILITY.yaml", MANIFEST.format(name="x") + "z: 1"),
        put(site, "cards/mail.md", "no frontmatter either\n"),
    ]


def told(daemon: Daemon, file: Path) -> int:
    return sum(str(file) in line for line in daemon.log().splitlines())


def ask(daemon: Daemon, event: str, **data: Any) -> Any:
    with daemon.operator() as remit:
        return remit.call(event, data)


def test_broken_files_are_logged_once_before_anybody_searches(site: Site) -> None:
    site.configure(card_dirs=["cards"], log_format="json")
    files = break_all(site)
    with site.serving() as daemon:
        eventually(lambda: [told(daemon, one) for one in files], lambda found: found == [1, 1, 1])
        for _ in range(3):
            ask(daemon, "discovery:refresh")
            ask(daemon, "discovery:discover", query="anything")
            ask(daemon, "awareness:cards")
        assert [told(daemon, one) for one in files] == [1, 1, 1]
        good = files[0].read_text(encoding="utf-8")
        files[0].write_text("---\nname: words\ndescription: Count words\n---\nCount.\n")
        ask(daemon, "discovery:refresh")
        files[0].write_text(good, encoding="utf-8")
        ask(daemon, "discovery:refresh")
        assert told(daemon, files[0]) == 2, "what came back is told again"


def test_a_manifest_tool_without_an_event_is_marked_and_never_offered(site: Site) -> None:
    put(site, ".remit/capabilities/folds/CAPABILITY.yaml", MANIFEST.format(name="folds"))
    gone = MANIFEST.format(name="gone") + "event: paper:fold\n"
    put(site, ".remit/capabilities/gone/CAPABILITY.yaml", gone)
    with site.serving() as daemon:
        query = "fold paper birds for a party"
        found = ask(daemon, "discovery:discover", query=query)
        because = {one["id"]: one.get("unavailable_because") for one in found["capabilities"]}
        assert because["tool:folds"] == "not callable: its manifest names no event"
        assert because["tool:gone"] == "not callable: there is no event paper:fold to call"
        assert "not callable" in found["summary"]
        detail = ask(daemon, "discovery:describe", id="tool:folds", render=True)
        assert (detail["available"], detail["event"]) == (False, None)
        assert "not callable" in detail["prompt"]
        usable = ask(daemon, "discovery:discover", query=query, only_available=True)
        assert not {one["id"] for one in usable["capabilities"]} & {"tool:folds", "tool:gone"}
        offered = {one["name"] for one in ask(daemon, "discovery:tools", query=query)["tools"]}
        assert not offered & {"folds", "gone"}
        listed = ask(daemon, "system:discover", format="mcp")["tools"]
        assert not {one["name"] for one in listed} & {"folds", "gone"}


@pytest.mark.parametrize("era", ERAS)
async def test_a_manifest_tool_is_called_by_its_id_and_described_without_an_event(
    site: Site, era: str
) -> None:
    served = MANIFEST.format(name="health") + "event: system:health\n"
    put(site, ".remit/capabilities/health/CAPABILITY.yaml", served)
    put(site, ".remit/capabilities/folds/CAPABILITY.yaml", MANIFEST.format(name="folds"))
    with site.serving():
        site.answer("key", "new", "ann", "--profile", "observer")
        async with host(site, era, "--agent", "ann") as client:
            listed = {one.name for one in (await client.list_tools()).tools}
            assert not listed & {"health", "folds"}
            wrapped = {"name": "tool:health", "arguments": {}}
            answer = await client.call_tool("call_capability", wrapped)
            assert not answer.is_error
            assert '"revision"' in str(answer.content[0])
            about = await client.call_tool("call_capability", wrapped | {"name": "tool:folds"})
            assert "not callable" in str(about.content[0])
