"""Plug-ins that import from where things were before keep working, and are told."""

import subprocess
import sys
from importlib import import_module

import pytest
from tests.fakes import Desk, texts

import remit
from remit.kernel.dispatch.registry import Registry


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("remit.runtime.registry", "event_handler"),
        ("remit.runtime.context", "Context"),
        ("remit.store.protocol", "Store"),
        ("remit.store.records", "FileLimits"),
        ("remit.model.session", "SessionKey"),
    ],
)
def test_a_former_path_gives_the_same_thing_and_warns(module: str, name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"from remit import {name}"):
        found = getattr(import_module(module), name)
    assert found is getattr(remit, name)


@pytest.mark.parametrize(
    "program",
    [
        "from remit.runtime.registry import event_handler; print(event_handler.__module__)",
        "from remit.runtime import registry; print(registry.event_handler.__module__)",
        "import remit.runtime.registry; print(remit.runtime.registry.event_handler.__module__)",
    ],
)
def test_a_plug_in_may_be_written_against_a_former_path(program: str) -> None:
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-W", "error::ImportWarning", "-c", program],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "remit.kernel.dispatch.registry"


@pytest.mark.parametrize(
    ("module", "name"), [("remit.runtime.registry", "Registry"), ("remit.store", "anything")]
)
def test_nothing_else_is_found_there(module: str, name: str) -> None:
    with pytest.raises(AttributeError, match="has no attribute"):
        getattr(import_module(module), name)


async def test_the_services_of_a_context_are_its_kernel_and_the_store_and_warn() -> None:
    registry = Registry()

    @registry.event_handler("old:keep")
    async def keep(key: str, ctx: remit.Context) -> int:
        with pytest.warns(DeprecationWarning, match=r"write ctx\.kernel"):
            services = ctx.services
        assert services.clock is ctx.kernel.clock
        return int((await services.store.state_set(key, 1, ctx.principal.id)).version)

    desk = Desk(registry.handlers(), texts("  base: {description: x, event_patterns: ['old:*']}"))
    assert await desk.ask("operator", "old:keep", {"key": "a"}) == 1
    entry = await desk.store.state_get("a")
    assert entry is not None
    assert entry.updated_by == "operator"
