"""Loading an extension into a running daemon, as an agent that may."""

from typing import Any

import anyio
import pytest
from tests.acceptance.site import Site

import remit_client
import remit_client.sync
from remit_client import Denied

MODULE = '''
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit import Store


@event_handler("tide:predict", capability="tides", effect="read")
async def predict(harbour: str) -> dict:
    """Predict when the water is high in a harbour.

    Args:
        harbour: its name.
    """
    return {"harbour": harbour, "high": "06:12"}


@event_handler("tide:wait", capability="tides", effect="read")
async def wait(ctx: Context, store: Store) -> str:
    """Wait for the tide, until the shared state says go."""
    import anyio

    ctx.report(0, 1, "waiting")
    with anyio.fail_after(20):
        while await store.state_get("go") is None:
            await anyio.sleep(0.01)
    return "it came"
'''
ENTRY = """
extensions:
  - name: tides
    description: Predicts the tides of harbours
    module: tides
    category: sea
"""
PILOT = 'capabilities: [extensions]\nadditional_tools: ["tide:*"]\n'
GUEST = 'additional_tools: ["tide:*"]\n'


def prepared(site: Site, folder: str = "caps", **settings: Any) -> Site:
    site.add_module("tides", MODULE)
    catalogue = site.folder / folder
    catalogue.mkdir(parents=True)
    (catalogue / "extensions.yaml").write_text(ENTRY, encoding="utf-8")
    site.add_profile("pilot", PILOT)
    site.add_profile("guest", GUEST)
    chosen = {"handler_paths": ["."], "extension_modules": ["tides"], "capability_dirs": ["caps"]}
    site.configure(**chosen | settings)
    return site


def found(client: remit_client.sync.Client, query: str) -> list[str]:
    answer = client.call("discovery:discover", {"query": query})
    return [one["id"] for one in answer["capabilities"]]


def test_an_agent_loads_an_extension_finds_its_tool_and_calls_it(site: Site) -> None:
    with prepared(site).serving() as daemon, daemon.client("ann", "pilot") as ann:
        query = "when is high water in the harbour"
        assert "extension:tides" in found(ann, "predict the tides of harbours")
        assert "tool:tide:predict" not in found(ann, query)
        with pytest.raises(Denied):
            ann.call("tide:predict", {"harbour": "Husum"})
        told = ann.call("extension:load", {"id": "extension:tides"})
        assert told["events"] == ["tide:predict", "tide:wait"]
        assert "tool:tide:predict" in found(ann, query)
        assert ann.call("tide:predict", {"harbour": "Husum"})["high"] == "06:12"
        assert ann.call("system:help", {"event": "tide:predict"})["event"] == "tide:predict"


def test_everybody_concerned_hears_of_it_and_the_audit_says_who_did_it(site: Site) -> None:
    with (
        prepared(site).serving() as daemon,
        daemon.client("ann", "pilot") as ann,
        daemon.client("bob", "guest") as bob,
        daemon.operator() as operator,
    ):
        with (
            bob.subscribe("permission:changed") as bobs,
            operator.subscribe("config:changed") as changes,
        ):
            told = ann.call("extension:load", {"id": "tides"})
            heard = next(iter(bobs)).data
            assert (heard["gained"], heard["revision"]) == (told["events"], told["revision"])
            plan = next(iter(changes)).data
            assert plan["profiles"]["guest"]["granted"] == told["events"]
        rows = operator.call("audit:query", {"event": "config:changed"})["items"]
        assert [(row["principal"], row["reason"]) for row in rows] == [("ann", "events_changed")]


def test_an_extension_is_there_again_after_a_restart_in_the_same_revision(site: Site) -> None:
    with prepared(site).serving() as daemon, daemon.client("ann", "pilot") as ann:
        revision = ann.call("extension:load", {"id": "tides"})["revision"]
    with site.serving() as daemon, daemon.operator() as operator:
        assert daemon.ready["revision"] == revision
        assert operator.call("tide:predict", {"harbour": "Husum"})["high"] == "06:12"
        operator.call("extension:unload", {"id": "tides"})
    with site.serving() as daemon, daemon.operator() as operator:
        assert operator.call("extension:list")["items"][0]["loaded"] is False


def test_an_extension_that_the_operator_took_off_the_list_is_not_loaded_again(site: Site) -> None:
    with prepared(site).serving() as daemon, daemon.operator() as operator:
        revision = operator.call("extension:load", {"id": "tides"})["revision"]
    site.configure(handler_paths=["."], capability_dirs=["caps"])
    with site.serving() as daemon, daemon.operator() as operator:
        assert daemon.ready["revision"] > revision, "it is a change, and told as one"
        with pytest.raises(remit_client.UnknownEvent):
            operator.call("tide:predict", {"harbour": "Husum"})
        assert "extension_forgotten" in daemon.log()


def test_code_that_a_cloned_repository_names_is_found_and_not_loaded(site: Site) -> None:
    prepared(site, ".remit/capabilities", capability_dirs=[])
    with site.serving() as daemon, daemon.operator() as operator:
        (entry,) = operator.call("extension:list")["items"]
        assert (entry["id"], entry["loadable"]) == ("extension:tides", False)
        with pytest.raises(Denied) as caught:
            operator.call("extension:load", {"id": "tides"})
        assert "capability_dirs" in caught.value.hint


def test_a_folder_of_the_workspace_that_the_operator_lists_is_trusted(site: Site) -> None:
    prepared(site, ".remit/capabilities", capability_dirs=[".remit/capabilities"])
    with site.serving() as daemon, daemon.operator() as operator:
        assert operator.call("extension:load", {"id": "tides"})["remembered"]


async def test_a_call_that_runs_is_answered_after_its_extension_is_unloaded(site: Site) -> None:
    with prepared(site).serving() as daemon, anyio.fail_after(20):
        async with remit_client.connect(home=daemon.home) as remit:
            await remit.call("extension:load", {"id": "tides"})
            begun, answers = anyio.Event(), []

            async def ask() -> None:
                answers.append(await remit.call("tide:wait", on_progress=lambda _: begun.set()))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await begun.wait()
                await remit.call("extension:unload", {"id": "tides"})
                with pytest.raises(remit_client.UnknownEvent):
                    await remit.call("tide:wait")
                await remit.call("state:set", {"key": "go", "value": True})
            assert answers == ["it came"]


def test_commands_beside_the_daemon_know_the_events_of_loaded_extensions(site: Site) -> None:
    with prepared(site).serving() as daemon, daemon.operator() as operator:
        assert "tide:predict" not in site.answer("resolve", "pilot")["allowed_events"]
        operator.call("extension:load", {"id": "tides"})
        assert "tide:predict" in site.answer("resolve", "pilot")["allowed_events"]
        operator.call("extension:unload", {"id": "tides"})
        assert "tide:predict" not in site.answer("resolve", "pilot")["allowed_events"]
