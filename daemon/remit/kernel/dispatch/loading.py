"""Importing modules for their handlers, at the start and while others run."""

import importlib
import sys
from collections.abc import Iterable
from typing import Any

import msgspec

from remit.errors import ConflictError, HandlerError, Place, Problem
from remit.kernel.dispatch.registry import REGISTRY, Registry
from remit.model.event import MisplacedHandlerError

# A module that was imported at run time, with the handlers that it brought.


class Brought(msgspec.Struct, frozen=True, eq=False):
    """The handlers of a module that was imported apart, and all that was imported for it."""

    module: str
    handlers: dict[str, Any]
    """By event, as in a `HandlerTable`."""
    imported: frozenset[str]

    def forget(self) -> None:
        """Drop the module, so that it can be brought in again; what still runs is not stopped."""
        for name in self.imported:
            sys.modules.pop(name, None)


class ModuleFailure(msgspec.Struct, frozen=True):
    """A module that could not be brought in; its events do not exist."""

    module: str
    place: Place
    message: str
    hint: str = ""
    code: str = HandlerError.code
    also: tuple[Place, ...] = ()
    """Further places that are to blame, such as the first of two handlers of one event."""

    def problems(self) -> list[Problem]:
        """The failure as mistakes of files, one for each place."""
        message = f"the handlers of {self.module} were not loaded: {self.message}"
        return [Problem(place, self.code, message, self.hint) for place in (self.place, *self.also)]

    def __str__(self) -> str:
        return f"{self.place}: the handlers of {self.module} were not loaded: {self.message}"


class ModuleLoadError(HandlerError):
    """A module that could not be brought in at run time."""

    def __init__(self, failure: ModuleFailure) -> None:
        super().__init__(str(failure), hint="repair the module, and load it again")
        self.failure = failure


def bring_in(module: str, registry: Registry = REGISTRY) -> Brought:
    """Import a module without serving anything of it; blocks for as long as the module likes.

    Raises:
        ConflictError: it is imported already, for somebody else.
        ModuleLoadError: it fails, or has no handlers; nothing of it stays behind.
    """
    if module in sys.modules:
        message = "its module is in use already"
        raise ConflictError(message, hint="unload what it was loaded for, or restart the daemon")
    known = set(sys.modules)
    importlib.invalidate_caches()  # it may have been written a moment ago
    with registry.apart() as collected:
        try:
            importlib.import_module(module)
            handlers = collected.handlers()
            for handler in handlers.values():
                _ = handler.shape  # a signature that cannot be served counts too
            if not handlers:
                raise HandlerError("it has no handlers")  # noqa: TRY301 - a failure like the others
        except (Exception, SystemExit) as error:
            _forget(module, known)
            failure = _failure(module, error)
            raise ModuleLoadError(failure) from error
    return Brought(module, handlers, frozenset(_of_package(module, set(sys.modules) - known)))


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
        return _failure(module, error)
    return None


def _failure(module: str, error: BaseException) -> ModuleFailure:
    place, *also = _places_of(error, module)
    hint, code = "repair or remove the module", HandlerError.code
    if isinstance(error, HandlerError):
        hint = error.hint or hint
    if isinstance(error, MisplacedHandlerError):
        code = error.problem
    return ModuleFailure(module, place, _message_of(error), hint, code, tuple(also))


def _forget(module: str, known: set[str]) -> None:
    """Drop what was imported of the module, so that a later try registers all of it again."""
    for name in _of_package(module, set(sys.modules) - known):
        sys.modules.pop(name, None)


def _of_package(module: str, names: Iterable[str]) -> list[str]:
    package = module.partition(".")[0]
    return [name for name in names if name == package or name.startswith(package + ".")]


def _message_of(error: BaseException) -> str:
    if isinstance(error, HandlerError):
        return error.message
    return f"{type(error).__name__}: {error}"


def _places_of(error: BaseException, module: str) -> tuple[Place, ...]:
    """Where it stands, else the deepest line of the failing import that is not its machinery."""
    if isinstance(error, MisplacedHandlerError) and error.places:
        return error.places
    if isinstance(error, SyntaxError) and error.filename:
        return (Place(error.filename, error.lineno or 1, error.offset or 1),)
    import traceback  # noqa: PLC0415 - only for a failure

    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename and frame.filename != __file__
    ]
    if not frames:
        return (Place(module),)
    return (Place(frames[-1].filename, frames[-1].lineno or 1),)
