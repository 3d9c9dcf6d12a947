"""Bringing handlers in: half a module is never served, and a failure is reported at its place."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import pytest
from tests.fakes import built_in_handlers

from remit.kernel.dispatch.registry import REGISTRY, Registry, load_handlers

GOOD = """
    from remit.kernel.dispatch.registry import event_handler

    @event_handler("shop:open", capability="shop")
    def open_() -> None:
        '''Open.'''
"""


@pytest.fixture(autouse=True)
def _clean_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules of a test are importable in it, and forgotten after it."""
    built_in_handlers()
    monkeypatch.syspath_prepend(str(tmp_path))
    known = set(sys.modules)
    with suppress(_Undo), REGISTRY.all_or_nothing():
        yield
        raise _Undo
    for name in set(sys.modules) - known:
        del sys.modules[name]


class _Undo(Exception):  # noqa: N818
    """Ends a block that takes everything back."""


def write(folder: Path, module: str, text: str) -> Path:
    path = folder / f"{module}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text))
    return path


def test_importing_a_module_registers_its_handlers(tmp_path: Path) -> None:
    write(tmp_path, "good_shop", GOOD)
    assert load_handlers(["good_shop"]) == ()
    assert "shop:open" in REGISTRY.handlers()


def test_a_module_that_fails_takes_all_its_handlers_with_it_and_no_others(tmp_path: Path) -> None:
    before = set(REGISTRY.handlers())
    path = write(tmp_path, "bad_shop", dedent(GOOD) + "\n1 / 0\n")
    write(tmp_path, "good_kiosk", GOOD.replace("shop:", "kiosk:"))
    (failure,) = load_handlers(["bad_shop", "good_kiosk"])
    assert failure.module == "bad_shop"
    assert (failure.place.file, failure.place.line) == (str(path), 8)
    assert failure.message == "ZeroDivisionError: division by zero"
    assert set(REGISTRY.handlers()) - before == {"kiosk:open"}


def test_a_module_that_was_repaired_can_be_loaded_again(tmp_path: Path) -> None:
    write(tmp_path, "mended", dedent(GOOD) + "\nimport mended_part\n")
    assert len(load_handlers(["mended"])) == 1
    write(tmp_path, "mended_part", "")
    assert load_handlers(["mended"]) == ()
    assert "shop:open" in REGISTRY.handlers()


def test_the_parts_of_a_repaired_package_are_loaded_again_too(tmp_path: Path) -> None:
    write(tmp_path, "kiosk/part", GOOD)
    write(tmp_path, "kiosk/__init__", "import kiosk.part\n1 / 0\n")
    assert len(load_handlers(["kiosk"])) == 1
    assert "shop:open" not in REGISTRY.handlers()
    write(tmp_path, "kiosk/__init__", "import kiosk.part\n")
    importlib.invalidate_caches()
    assert load_handlers(["kiosk"]) == ()
    assert "shop:open" in REGISTRY.handlers()


def test_a_syntax_error_is_reported_at_its_line_and_column(tmp_path: Path) -> None:
    path = write(tmp_path, "garbled", "x = 1\ny = (1,\n    2 3)\n")
    (failure,) = load_handlers(["garbled"])
    assert str(failure).startswith(f"{path}:3:5: the handlers of garbled were not loaded")


def test_a_failure_in_an_imported_part_is_reported_where_it_stands(tmp_path: Path) -> None:
    part = write(tmp_path, "kit/part", "raise RuntimeError('broken part')\n")
    write(tmp_path, "kit/__init__", dedent(GOOD) + "\nimport kit.part\n")
    (failure,) = load_handlers(["kit"])
    assert (failure.place.file, failure.place.line) == (str(part), 1)
    assert "kit.part" not in sys.modules


def test_a_module_that_is_nowhere_is_reported_by_its_name() -> None:
    (failure,) = load_handlers(["no_such_module_here"])
    assert failure.module == "no_such_module_here"
    assert "no_such_module_here" in str(failure)


def test_a_module_that_exits_is_a_failure_like_any_other(tmp_path: Path) -> None:
    write(tmp_path, "leaver", dedent(GOOD) + "\nraise SystemExit(3)\n")
    (failure,) = load_handlers(["leaver"])
    assert failure.message == "SystemExit: 3"
    assert "shop:open" not in REGISTRY.handlers()


def test_a_signature_that_cannot_be_served_fails_its_whole_module(tmp_path: Path) -> None:
    text = dedent(GOOD) + "\n@event_handler('shop:close')\ndef close(when):\n    '''Close.'''\n"
    path = write(tmp_path, "untyped", text)
    (failure,) = load_handlers(["untyped"])
    assert "'when' has no type" in failure.message
    assert str(path) in str(failure)
    assert "shop:open" not in REGISTRY.handlers()


def test_an_event_of_another_module_cannot_be_taken_over(tmp_path: Path) -> None:
    path = write(tmp_path, "robber", GOOD.replace("shop:open", "state:get"))
    before = REGISTRY.handlers()["state:get"]
    (failure,) = load_handlers(["robber"])
    assert f"{path}:4" in failure.message
    assert "state/events.py" in failure.message
    assert REGISTRY.handlers()["state:get"] is before


def test_a_registry_of_ones_own_is_left_alone_by_a_failing_module(tmp_path: Path) -> None:
    registry = Registry()
    write(tmp_path, "elsewhere", GOOD)
    assert load_handlers(["elsewhere"], registry) == ()
    assert registry.handlers() == {}
