"""Everything a command can ask without a daemon: definitions and stored decisions, compiled here.

The same computation as in the daemon, over the same: the definition files, and what the home has
stored. So a command without a daemon answers as a daemon would that was started now.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from remit.app.manifest import built_in_events, other_modules
from remit.config.definitions.files import Files, read_files, starter_dir
from remit.config.settings.home import Home, check_file
from remit.config.settings.lock import running_pid
from remit.config.settings.table import Settings
from remit.errors import DefinitionError, HomeError, InvalidNameError, NotFoundError, Place, Problem
from remit.kernel.authority.explanation import explain_holder, explain_profile
from remit.kernel.authority.fleet import Fleet
from remit.kernel.authority.revision import compile_files
from remit.kernel.authority.standing import LAST_GOOD, Standing, standing_of
from remit.model.event import EventSpec, Universe, make_universe
from remit.model.grant import Grant
from remit.model.names import did_you_mean, parse_event_name
from remit.model.upstream import server_of
from remit.policy.catalogue import Catalogue
from remit.policy.queries import Obstacle

if TYPE_CHECKING:
    from remit.app.offline_upstreams import OfflineUpstreams
    from remit.kernel.dispatch.handler import Handler
    from remit.kernel.dispatch.registry import ModuleFailure

MAX_EVENT_LIST = 4 << 20
_MOST_NAMED = 5


class Source(msgspec.Struct, frozen=True):
    """The definitions and decisions that an answer about permissions was computed from."""

    kind: Literal["daemon", "files"]
    revision: int
    catalogue: str
    compositions: str | None
    home: str = ""
    """The state directory whose decisions count too; empty when nothing is stored there."""
    beside_daemon: bool = False
    """Whether these are files as they are on disk, and a daemon runs that may have others."""

    @property
    def is_doubtful(self) -> bool:
        """Tell whether files alone could say something else."""
        return self.kind == "daemon" or self.beside_daemon or bool(self.home)

    def __str__(self) -> str:
        if self.kind == "daemon":
            return f"the running daemon, revision {self.revision}, on {self.catalogue}"
        stored = f" and what {self.home} has stored" if self.home else ""
        on_disk = ", whatever the daemon has in force" if self.beside_daemon else ""
        return f"{self.catalogue}{stored}{on_disk}"


class Events(msgspec.Struct, frozen=True, eq=False):
    """The events to compile against, and the handlers behind them where these were imported."""

    universe: Universe
    handlers: Mapping[str, "Handler"] = {}
    failures: tuple["ModuleFailure", ...] = ()


class Workbench(msgspec.Struct, frozen=True, eq=False):
    """A compiled catalogue with its files, and the living agents of the home.

    It is what a daemon would have that was started with these files in this home.
    """

    catalogue: Catalogue
    fleet: Fleet
    files: Files
    source: Source
    tool_names: Mapping[str, Mapping[str, str]] = {}
    """What each caller was shown events as, by caller and event."""
    handlers: Mapping[str, "Handler"] = {}
    """The handlers by event, where they were asked for."""
    failures: tuple["ModuleFailure", ...] = ()

    def module_problems(self) -> list[Problem]:
        """The modules that could not be loaded, as mistakes at their places."""
        return [problem for failure in self.failures for problem in failure.problems()]


def source_of_daemon(settings: Settings, revision: int) -> Source:
    """The source of an answer that the running daemon gave."""
    return _source("daemon", settings, revision)


def source_of_files(settings: Settings) -> Source:
    """The source of an answer from files that were not compiled."""
    return _source("files", settings, 1)


def _source(
    kind: Literal["daemon", "files"], settings: Settings, revision: int, home: str = ""
) -> Source:
    catalogue, compositions = definition_paths(settings)
    folder = None if compositions is None else str(compositions)
    beside = kind == "files" and _is_served(settings)
    return Source(kind, revision, str(catalogue), folder, home, beside)


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


def open_workbench(
    settings: Settings,
    events: Path | None = None,
    *,
    in_force: bool = False,
    asked: str = "",
    with_handlers: bool = False,
) -> Workbench:
    """Compile the definitions together with what the home has stored.

    Args:
        settings: where the definitions are, and which home.
        events: a file with one event name a line, instead of the registered handlers.
        in_force: beside a running daemon take the files that it has in force, not those on disk.
        asked: the event that is asked about: its place is told with its line.
        with_handlers: import the handlers, and do not only take what is known of their events.

    Raises:
        DefinitionError: they do not compile.
        StoreError: the home has a store that cannot be read.
    """
    standing = read_standing(settings)
    last_good = standing.last_good if in_force and _is_served(settings) else None
    found = find_events(settings, events, asked=asked, with_handlers=with_handlers)
    revision = compile_files(
        definition_files(settings) if last_good is None else last_good.files,
        found.universe,
        revision=1 if last_good is None else last_good.revision,
        approvals=standing.approvals,
        made=standing.made,
    )
    kind: Literal["daemon", "files"] = "files" if last_good is None else "daemon"
    stored = "" if standing.is_empty else str(settings.home)
    source = _source(kind, settings, revision.catalogue.revision, stored)
    return Workbench(
        revision.catalogue,
        standing.fleet(),
        revision.files,
        source,
        standing.tool_names,
        found.handlers,
        found.failures,
    )


def read_standing(settings: Settings) -> Standing:
    """What the home has stored that decides.

    Raises:
        HomeError: nobody lets us see whether there is a store.
        StoreError: the store is there and cannot be read.
    """
    database = Home(settings.home).database
    try:
        if not database.exists():
            return Standing()
    except OSError as error:
        message = f"{database} cannot be looked at: {error.strerror or error}"
        hint = "make the state directory yours, or choose another with --home"
        raise HomeError(message, hint=hint) from error
    for suffix in ("", "-wal", "-shm"):
        check_file(database.with_name(f"{database.name}{suffix}"))
    from remit.kernel.store.snapshot import read_snapshot  # noqa: PLC0415 - sqlite3 costs 6 ms

    return standing_of(read_snapshot(database, LAST_GOOD))


def _is_served(settings: Settings) -> bool:
    return running_pid(Home(settings.home)) is not None


def find_events(
    settings: Settings,
    events: Path | None = None,
    *,
    asked: str = "",
    with_handlers: bool = False,
) -> Events:
    """The events to compile against; the arguments are those of `open_workbench`.

    Handlers are imported where they are asked for, and where there are others than the built-in
    ones: what these are called, and whether they can be loaded, nobody else knows.
    """
    if events is not None:
        return Events(make_universe(read_event_list(events)))
    others = other_modules(settings)
    if with_handlers or others:
        from remit.app.features import load_all_handlers  # noqa: PLC0415 - every feature

        loaded = load_all_handlers(settings)
        handlers = {**_upstreams(settings).handlers(), **loaded.handlers}
        specs = [handler.spec for handler in handlers.values()]
        return Events(make_universe(specs), handlers, loaded.failures)
    upstream = _upstreams(settings).specs() if _may_have_upstreams(settings) else []
    return Events(make_universe([*upstream, *built_in_events(asked)]))


def upstream_problems(settings: Settings) -> tuple[Problem, ...]:
    """What is wrong with the file of servers, and with what is kept about them."""
    return _upstreams(settings).problems if _may_have_upstreams(settings) else ()


def _upstream_obstacle(settings: Settings, event: str) -> Obstacle | None:
    return _upstreams(settings).obstacle(event) if server_of(event) else None


def _may_have_upstreams(settings: Settings) -> bool:
    path = settings.upstreams or Home(settings.home).upstreams_file
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError:
        return True  # reading it says what is wrong
    return True


def _upstreams(settings: Settings) -> "OfflineUpstreams":
    from remit.app.offline_upstreams import OfflineUpstreams  # noqa: PLC0415 - where there are any

    return OfflineUpstreams(settings)


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


def is_agent(bench: Workbench, subject: str, *, files_first: bool = False) -> bool:
    """Tell whether a subject is an agent; a profile of that name counts first if asked for.

    Raises:
        NotFoundError: it is neither.
    """
    profiles = bench.catalogue.compositions
    if subject in bench.fleet and not (files_first and subject in profiles):
        return True
    if subject not in profiles:
        known = [*profiles, *bench.fleet.names()]
        also = ", and no agent of that name" if len(bench.fleet) else ""
        message = f"there is no profile {subject!r}{also}"
        raise NotFoundError(message, hint=did_you_mean(subject, known))
    return False


def grant_of_subject(bench: Workbench, subject: str, *, files_first: bool = False) -> Grant:
    """What an agent or a profile holds now.

    Raises:
        NotFoundError: there is neither.
    """
    if is_agent(bench, subject, files_first=files_first):
        return bench.fleet.grant(subject, bench.catalogue)
    return bench.fleet.with_made(bench.catalogue.grants[subject], bench.catalogue)


def explain_subject(
    bench: Workbench,
    settings: Settings,
    subject: str,
    event: str,
    session: str | None,
    *,
    files_first: bool,
) -> dict[str, Any]:
    """Explain a decision about an agent or a profile.

    Raises:
        NotFoundError: there is neither.
    """
    fleet, catalogue = bench.fleet, bench.catalogue
    find_obstacle = partial(_upstream_obstacle, settings)
    if is_agent(bench, subject, files_first=files_first):
        return explain_holder(
            fleet, catalogue, subject, event, session=session, find_obstacle=find_obstacle
        )
    return explain_profile(fleet, catalogue, subject, event, find_obstacle=find_obstacle)


def abandoned_agents(bench: Workbench) -> Iterator[Problem]:
    """Profiles that living agents run under, and that are not defined."""
    users: dict[str, list[str]] = {}
    for agent in bench.fleet.all():
        profile = agent.spec.profile
        if profile and profile not in bench.catalogue.compositions:
            users.setdefault(profile, []).append(agent.id)
    for profile, names in sorted(users.items()):
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        listed = ", ".join(names[:_MOST_NAMED]) + more
        yield Problem(
            Place(bench.files.folder or bench.files.catalogue),
            "profile_in_use",
            f"there is no profile {profile!r}, and living agents run under it: {listed}",
            "define it again, or end them: remit revoke AGENT; they keep what everybody has",
            severity="warning",
        )
