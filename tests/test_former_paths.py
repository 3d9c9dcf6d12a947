"""Plug-ins that import from where things were before keep working, and are told."""

import subprocess
import sys
from importlib import import_module

import pytest

import remit


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
