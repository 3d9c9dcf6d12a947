"""The token bill of a real daemon: what a host is listed and finds, over restarts, by command."""

import pytest
from tests.acceptance.site import Site, new_site
from tests.acceptance.test_http import client as http_client
from tests.acceptance.test_mcp import ERAS, host

from remit.model.descriptor import META_TOOL

EXPOSURES = ("all", "discovered", "turn")


@pytest.mark.parametrize("era", ERAS)
async def test_what_a_host_is_listed_is_what_tools_says_and_the_bill_counts(era: str) -> None:
    with new_site() as site:
        for exposure in EXPOSURES:
            text = f"extends: observer\nexposure: {exposure}\npinned: [state:get]\n"
            site.add_profile(f"p{exposure}", text)
        shown = {}
        with site.serving():
            for exposure in EXPOSURES:
                site.answer("key", "new", exposure, "--profile", f"p{exposure}")
                async with host(site, era, "--agent", exposure) as client:
                    listed = {one.name for one in (await client.list_tools()).tools}
                report = site.answer("tools", exposure)
                assert {one["name"] for one in report["tools"]} == listed
                shown[exposure] = report["tokens"]["sent"]
                (item,) = site.answer("bill", exposure)["items"]
                assert item["kinds"]["lists"] == {
                    "count": 1,
                    "sent": shown[exposure],
                    "full_dump": report["tokens"]["full_dump"],
                }
        assert shown["all"] > 4 * shown["discovered"]
        assert shown["discovered"] >= shown["turn"] > 0


async def test_the_bill_outlives_a_restart_and_is_in_the_metrics() -> None:
    with new_site() as site:
        site.configure(http="127.0.0.1:0")
        with site.serving() as daemon:
            site.answer("key", "new", "ann", "--profile", "observer")
            async with host(site, ERAS[0], "--agent", "ann") as client:
                await client.list_tools()
                await client.call_tool(META_TOOL, {"query": "read the shared state"})
            with http_client(daemon) as http:
                metrics = http.get("/metrics").text
            assert "remit_tokens_searches_total" in metrics
            assert "remit_tokens_sent_total 0.0" not in metrics
            told = site.answer("bill", "ann", "--since", "7d")
        with site.serving():
            assert site.answer("bill", "ann", "--since", "7d") == told
            (item,) = told["items"]
            assert set(item["kinds"]) == {"lists", "searches"}
            assert (item["turns"], len(item["latest"]), len(item["days"])) == (1, 1, 1)
            assert "ann" in {one["agent"] for one in site.answer("bill")["items"]}
            text = site.run("bill", "ann").stdout
            assert (
                f"{item['sent']:,} tokens in 1 turn, {item['full_dump']:,} for everything" in text
            )
            assert site.run("bill", "nobody").returncode != 0


def test_without_a_daemon_there_is_no_bill(site: Site) -> None:
    assert site.run("bill").returncode == 3
