"""Decorated functions, the events they answer, and the import of modules for them.

Importing a module registers its handlers. A module that fails to import takes all of its handlers
with it, so half a module is never served. What is imported while the daemon runs is collected apart
(`Registry.apart`), and served only once a revision with it is in force.
"""

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import msgspec

from remit.errors import ConflictError, HandlerError, Place, Problem
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.handler import Handler
from remit.model.event import EventSpec, MisplacedHandlerError, TakenEventError
from remit.model.limits import EFFECTS, Effect
from remit.model.names import EventName, did_you_mean, parse_event_name

Function = TypeVar("Function", bound=Callable[..., Any])

_APART: ContextVar["tuple[Registry, Registry] | None"] = ContextVar("apart", default=None)
"""A registry, and the one that takes in what is registered with it in this thread."""


class Registry:
    """All handlers that were registered so far."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._names: dict[str, Handler] = {}

    def event_handler(  # noqa: PLR0913 - each flag is one word on a decorator
        self,
        name: str,
        *,
        capability: str | None = None,
        description: str = "",
        effect: Effect = "write",
        requires_auth: bool = True,
        resource_intensive: bool = False,
        open_world: bool = False,
        wildcard: bool = True,
        approval: bool = False,
        pushed: bool = False,
        fleeting: bool = False,
        only_takes: bool = False,
        inline: bool = False,
        content: bool = False,
        timeout: float | None = None,
        since: str = "",
        tool: str = "",
        title: str = "",
        aliases: Iterable[str] = (),
        triggers: Iterable[str] = (),
        deprecated: str = "",
        meaning: Callable[[Any, Context], Any] | None = None,
    ) -> Callable[[Function], Function]:
        """Serve an event with the decorated function.

        The request's shape comes from the function: either one parameter that is a msgspec Struct,
        or plain typed parameters. A parameter of type `Context` gets the context of the call.

        Args:
            name: the event.
            capability: the capability that holds this event.
            description: one line for lists; the first line of the docstring when absent.
            effect: `read`, `write` or `destructive`.
            requires_auth: whether the caller must be authenticated.
            resource_intensive: whether one call may cost a lot.
            open_world: whether it reaches outside of this installation.
            wildcard: False when no wildcard may ever grant it.
            approval: True when each call waits for an operator's yes to exactly its arguments.
            pushed: True when the event is only ever pushed: the function documents its data and
                is never called.
            only_takes: True when it only ever takes rights away: it then happens even when the
                store cannot be written, and is answered with that error.
            fleeting: True when a call leaves nothing behind, so that allowed ones are audited no
                more than reads are.
            inline: a sync function that only computes for microseconds is run in the reader
                itself; other sync functions run in a worker thread.
            content: True when it answers `{content: [blocks], structured_content?}` with the
                blocks of MCP (text, image, audio, resource), so that hosts show them as such.
            timeout: seconds, instead of the configured time-out.
            since: the version that brought it.
            tool: its name in tool lists, when not made from the event name.
            title: its name for people, where hosts show one.
            aliases: old names that still work.
            triggers: events that may be pushed because of it.
            deprecated: why not to use it any more, and what instead.
            meaning: tells what the data of a call stand for by now, such as the rights behind the
                name of a profile: a call that was approved waits again when that was edited.
        """

        def register(function: Function) -> Function:
            _check_effect(effect, place_of(function))
            spec = EventSpec(
                name=_event_name(name, function),
                capability=capability,
                summary=description or _first_line(function),
                tool=tool,
                title=title,
                effect=effect,
                requires_auth=requires_auth,
                resource_intensive=resource_intensive,
                open_world=open_world,
                wildcard=wildcard,
                approval=approval,
                pushed=pushed,
                fleeting=fleeting,
                only_takes=only_takes,
                content=content,
                timeout=timeout,
                since=since,
                aliases=tuple(_event_name(alias, function) for alias in aliases),
                triggers=tuple(triggers),
                deprecated=deprecated,
                place=place_of(function),
            )
            self.add(Handler(spec, function, inline=inline, meaning=meaning))
            return function

        return register

    @contextmanager
    def apart(self) -> Iterator["Registry"]:
        """Collect what this thread registers inside in a registry of its own."""
        collected = Registry()
        token = _APART.set((self, collected))
        try:
            yield collected
        finally:
            _APART.reset(token)

    def add(self, handler: Handler) -> None:
        """Take in a handler.

        Raises:
            HandlerError: one of its names is taken.
        """
        apart = _APART.get()
        if apart is not None and apart[0] is self:
            apart[1].add(handler)
            return
        names = (handler.spec.name, *handler.spec.aliases)
        for name in names:
            first = self._names.get(name)
            if first is not None:
                raise TakenEventError(name, first.spec.place, handler.spec.place)
        self._handlers[handler.spec.name] = handler
        self._names.update(dict.fromkeys(names, handler))

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Take back everything that was registered inside when the block raises."""
        before = (dict(self._handlers), dict(self._names))
        try:
            yield
        except BaseException:
            self._handlers, self._names = before
            raise

    def handlers(self) -> dict[str, Handler]:
        """All handlers by event name."""
        return dict(self._handlers)

    def specs(self) -> list[EventSpec]:
        """What is known about each event."""
        return [handler.spec for handler in self._handlers.values()]


def _event_name(text: str, function: Callable[..., Any]) -> EventName:
    try:
        return parse_event_name(text)
    except Exception as error:
        place = place_of(function)
        hint = "see 'agent:spawn'"
        raise MisplacedHandlerError(str(error), hint=hint, places=(place,)) from error


def _first_line(function: Callable[..., Any]) -> str:
    return (function.__doc__ or "").strip().partition("\n")[0]


def _check_effect(effect: str, place: Place) -> None:
    """Refuse a word that is no effect: whatever compares effects would stop at it.

    Raises:
        MisplacedHandlerError: it is none.
    """
    if effect not in EFFECTS:
        hint = did_you_mean(str(effect), EFFECTS)
        raise MisplacedHandlerError(f"{effect!r} is no effect", hint=hint, places=(place,))


def place_of(function: Callable[..., Any]) -> Place:
    """Where a function is defined."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return Place(function.__code__.co_filename, function.__code__.co_firstlineno)


REGISTRY = Registry()
event_handler = REGISTRY.event_handler


class LoadedModule(msgspec.Struct, frozen=True, eq=False):
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


def load_module(module: str, registry: Registry = REGISTRY) -> LoadedModule:
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
    return LoadedModule(module, handlers, frozenset(_of_package(module, set(sys.modules) - known)))


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
