"""Bringing handlers in: modules by name, and plug-ins by entry point."""

import importlib
import os
import sys
from collections.abc import Iterable

import msgspec

from remit.errors import HandlerError
from remit.model.place import Place
from remit.runtime.registry import REGISTRY, Registry

ENTRY_POINT_GROUP = "remit.handlers"
_ENTRY_POINTS_LIMIT = 65_536


class ModuleFailure(msgspec.Struct, frozen=True):
    """A module that could not be brought in; its events do not exist."""

    module: str
    place: Place
    message: str

    def __str__(self) -> str:
        return f"{self.place}: the handlers of {self.module} were not loaded: {self.message}"


def load_handlers(
    modules: Iterable[str], registry: Registry = REGISTRY, *, trusted: bool = False
) -> tuple[ModuleFailure, ...]:
    """Import modules for their handlers; one that fails does not stop the others.

    Signatures of trusted modules are read when they are first needed: our own tests checked them,
    and the command line asks for names only.
    """
    failures = []
    for module in modules:
        failure = _load(module, registry, trusted=trusted)
        if failure is not None:
            failures.append(failure)
    return tuple(failures)


def _load(module: str, registry: Registry, *, trusted: bool) -> ModuleFailure | None:
    known = set(sys.modules)
    before = set(registry.handlers())
    try:
        with registry.all_or_nothing():
            importlib.import_module(module)
            added = set() if trusted else set(registry.handlers()) - before
            for name in added:
                _ = registry.handlers()[name].shape  # a signature that cannot be served counts too
    except (Exception, SystemExit) as error:  # a script that exits when imported
        _forget(module, known)
        return ModuleFailure(module, _place_of(error, module), _message_of(error))
    return None


def _forget(module: str, known: set[str]) -> None:
    """Drop what was imported of the module, so that a later try registers all of it again."""
    package = module.partition(".")[0]
    for name in set(sys.modules) - known:
        if name == package or name.startswith(package + "."):
            del sys.modules[name]


def _message_of(error: BaseException) -> str:
    if isinstance(error, HandlerError):
        return error.message
    return f"{type(error).__name__}: {error}"


def _place_of(error: BaseException, module: str) -> Place:
    """The deepest line of the failing import that is not the import machinery."""
    if isinstance(error, SyntaxError) and error.filename:
        return Place(error.filename, error.lineno or 1, error.offset or 1)
    import traceback  # noqa: PLC0415 - only for a failure

    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename and frame.filename != __file__
    ]
    if not frames:
        return Place(module)
    return Place(frames[-1].filename, frames[-1].lineno or 1)


def plugin_modules() -> list[str]:
    """The modules that installed packages offer, in the group `remit.handlers`.

    Reads the metadata of installed packages directly: importlib.metadata does the same in ten times
    the time, and every command pays for this.
    """
    found: set[str] = set()
    for folder in dict.fromkeys(sys.path):
        try:
            entries = os.listdir(folder or ".")  # noqa: PTH208 - a Path for each is the cost
        except OSError:
            continue
        for entry in entries:
            if entry.endswith((".dist-info", ".egg-info")):
                found.update(_offered(f"{folder or '.'}/{entry}/entry_points.txt"))
    return sorted(found)


def _offered(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            text = file.read(_ENTRY_POINTS_LIMIT)
    except (OSError, UnicodeDecodeError):
        return []
    inside = False
    modules = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line == f"[{ENTRY_POINT_GROUP}]"
        elif inside and "=" in line:
            modules.append(line.partition("=")[2].partition(":")[0].strip())
    return modules
