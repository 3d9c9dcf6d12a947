"""Skills that come and go while a host of a real daemon is connected over HTTP."""

from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import PromptListChangedNotification
from tests.acceptance.site import PATIENCE, Site
from tests.outside.hosts import host

SKILL = "---\nname: tides\ndescription: Tell when the water is high\n---\nLook it up.\n"


def add_skill(site: Site) -> None:
    folder = site.folder / "skills" / "tides"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL, encoding="utf-8")


async def prompts(client: Client) -> list[str]:
    return [one.name for one in (await client.list_prompts()).prompts]


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_skill_that_comes_is_news_to_a_host(site: Site, era: str) -> None:
    told = anyio.Event()

    async def note(message: Any) -> None:
        if isinstance(message, PromptListChangedNotification):
            told.set()

    site.configure(http="127.0.0.1:0", capability_dirs=["skills"])
    with site.serving() as daemon, daemon.operator() as operator, anyio.fail_after(PATIENCE):
        daemon.new_key("ann", "observer")
        async with host(daemon, "ann", mode=era, message_handler=note) as client:
            assert await prompts(client) == []
            add_skill(site)
            if era == "legacy":
                operator.call("discovery:refresh")
                await told.wait()
            else:
                async with client.listen(prompts_list_changed=True) as news:
                    operator.call("discovery:refresh")
                    await anext(aiter(news))
            assert await prompts(client) == ["tides"]
