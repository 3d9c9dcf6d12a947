"""Everything a command can ask without a daemon: definitions compiled in this process."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from remit.app.handlers import load_all_handlers
from remit.app.outside_offline import outside_handlers
from remit.config.files import Files, read_files
from remit.config.settings_table import Settings
from remit.config.starter import starter_dir
from remit.errors import InvalidNameError
from remit.model.event import EventSpec
from remit.model.names import parse_event_name
from remit.model.place import DefinitionError, Place, Problem
from remit.policy.catalogue import Catalogue
from remit.policy.universe import Universe, make_universe
from remit.runtime.authority import compile_files
from remit.runtime.handler import Handler
from remit.runtime.loading import ModuleFailure

MAX_EVENT_LIST = 4 << 20


class Workbench(msgspec.Struct, frozen=True, eq=False):
    """A compiled catalogue with its files and the handlers it was compiled against."""

    catalogue: Catalogue
    files: Files
    handlers: Mapping[str, Handler]
    failures: tuple[ModuleFailure, ...] = ()


def definition_files(settings: Settings) -> Files:
    """Read the configured definitions, or the starter's."""
    return read_files(*definition_paths(settings))


def definition_paths(settings: Settings) -> tuple[Path, Path | None]:
    """Where the catalogue and the folder of compositions are.

    A catalogue of one's own comes with compositions of one's own, or with none.
    """
    catalogue = settings.catalogue or starter_dir() / "capabilities.yaml"
    compositions = settings.compositions
    if compositions is None:
        beside = catalogue.parent / "compositions"
        compositions = beside if settings.catalogue is None or beside.is_dir() else None
    return catalogue, compositions


def open_workbench(settings: Settings, events: Path | None = None) -> Workbench:
    """Compile the definitions.

    Args:
        settings: where the definitions are.
        events: a file with one event name a line, instead of the registered handlers.

    Raises:
        DefinitionError: they do not compile.
    """
    universe, handlers, failures = load_universe(settings, events)
    revision = compile_files(definition_files(settings), universe)
    return Workbench(revision.catalogue, revision.files, handlers, failures)


def load_universe(
    settings: Settings, events: Path | None
) -> tuple[Universe, Mapping[str, Handler], tuple[ModuleFailure, ...]]:
    """The events to compile against, and the handlers behind them."""
    if events is not None:
        return make_universe(read_event_list(events)), {}, ()
    loaded = load_all_handlers(settings)
    handlers = {**outside_handlers(settings), **loaded.handlers}
    specs = [handler.spec for handler in handlers.values()]
    return make_universe(specs), handlers, loaded.failures


def read_event_list(path: Path) -> list[EventSpec]:
    """Read event names, one a line; blank lines and `#` comments are passed over.

    Raises:
        DefinitionError: a line is no event name, or the file cannot be read.
    """
    problems: list[Problem] = []
    specs: list[EventSpec] = []
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_EVENT_LIST + 1)
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise DefinitionError([Problem(Place(str(path)), "unreadable", message)]) from error
    try:
        lines = raw.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        place = Place(str(path), raw[: error.start].count(b"\n") + 1)
        raise DefinitionError([Problem(place, "not_utf8", "this is not UTF-8 text")]) from error
    if len(raw) > MAX_EVENT_LIST:
        message = f"more than {MAX_EVENT_LIST:,} bytes of event names"
        raise DefinitionError([Problem(Place(str(path)), "too_large", message)])
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        try:
            specs.append(EventSpec(name=parse_event_name(text)))
        except InvalidNameError as error:
            place = Place(str(path), number, line.index(text) + 1)
            problems.append(
                Problem(place, error.code, error.message, error.hint, "error", line, len(text))
            )
    if problems:
        raise DefinitionError(problems)
    return specs


def settings_with(settings: Settings, **changes: Any) -> Settings:
    """The same settings with some values replaced."""
    return msgspec.structs.replace(settings, **changes)
