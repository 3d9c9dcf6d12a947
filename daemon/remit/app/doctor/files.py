"""What `remit doctor` finds out about files: the store, definitions, skills, cards, servers."""

import shlex
from collections.abc import Iterable, Iterator

from remit.app.doctor.look import Check, State, told_by_daemon
from remit.app.offline_cards import read_cards
from remit.app.workbench import Workbench, open_workbench, read_standing
from remit.config.definitions.launchers import Commands, launcher_warnings
from remit.config.settings.home import Home
from remit.config.settings.launch_user import launch_user
from remit.config.settings.lock import running_pid
from remit.config.settings.table import Settings
from remit.errors import SettingsError, StoreError
from remit.features.cards.scorers import configured_scorers
from remit.features.cards.views import unbound
from remit.features.discovery.setup import gatherer
from remit.features.skills.views import binding_problems
from remit.features.upstreams.file import inspect_upstreams, upstreams_path
from remit.model.names import did_you_mean
from remit.model.place import DefinitionError

MOST = 20
"""Files of one kind that are told one by one."""
Told = dict[str, object]
"""A problem as it travels: `Problem.to_json`, with `severity`."""


def look_at_store(settings: Settings) -> Iterator[Check]:
    """Whether what the home has stored can be read."""
    database = Home(settings.home).database
    if not database.exists():
        return
    try:
        read_standing(settings)
    except StoreError as error:
        where = shlex.quote(str(database))
        repair = f"{error.hint or 'restore a backup'}: mv {where} {where}.old"
        yield Check("store", "broken", error.message, repair)
    else:
        yield Check("store", "fine", f"{database} can be read")


def look_at_definitions(settings: Settings) -> Iterator[Check]:
    """Definitions, handlers, and the skills and cards that hang on them."""
    try:
        bench = open_workbench(settings)
    except DefinitionError as error:
        yield Check("definitions", "broken", error.message, "remit check")
        return
    except StoreError:
        return  # the look at the store tells it
    for failure in bench.failures:
        repair = failure.hint or "repair or remove the module"
        yield Check("handlers", "broken", str(failure), repair)
    catalogue = bench.catalogue
    message = f"{len(catalogue.capabilities)} capabilities, {len(catalogue.compositions)} profiles"
    yield Check("definitions", "fine", message)
    yield from _launchers(settings, bench)
    yield from _left_out(_file_problems(settings, bench))


def _launchers(settings: Settings, bench: Workbench) -> Iterator[Check]:
    origin, commands = settings.origins["launch_commands"], Commands(settings.launch_commands)
    for entry in commands.missing():
        message = f"launch_commands ({origin}) lists {entry.starts!r}, and there is no such program"
        yield Check("launching", "broken", message, "install it, or take it out of the list")
    try:
        launch_user(settings)
    except SettingsError as error:
        yield Check("launching", "broken", error.message, error.hint)
    for problem in launcher_warnings(bench.catalogue, commands):
        yield Check("launching", "warning", f"{problem.place}: {problem.message}", problem.hint)


def _file_problems(settings: Settings, bench: Workbench) -> list[Told]:
    """What is wrong with skills, manifests and cards; as the daemon sees them, if one runs."""
    if running_pid(Home(settings.home)) is not None:
        stats = told_by_daemon(settings, "system:stats")
        if stats is not None and "file_problems" in stats:
            return list(stats["file_problems"])
    gathered, cards = gatherer(settings)(), read_cards(settings)
    capabilities = bench.catalogue.capabilities
    problems = (
        *gathered.problems,
        *binding_problems(gathered.descriptors, tuple(capabilities.values())),
        *cards.problems,
        *unbound(cards, capabilities),
    )
    return [problem.to_json() | {"severity": problem.severity} for problem in problems]


def _left_out(found: Iterable[Told]) -> Iterator[Check]:
    problems = list(found)
    for one in problems[:MOST]:
        message = f"{one['file']}:{one['line']}:{one['column']}: {one['message']}"
        state: State = "broken" if one["severity"] == "error" else "warning"
        repair = str(one["hint"]) or "repair the file; it is left out until then"
        yield Check("files", state, message, repair)
    if len(problems) > MOST:
        message = f"and {len(problems) - MOST} more problems of skills, manifests and cards"
        yield Check("files", "warning", message, "repair these first")
    if not problems:
        yield Check("files", "fine", "no skill, manifest or card is left out")


def look_at_scorers(settings: Settings) -> Iterator[Check]:
    """The scorers of cards: those that are wanted, and those that packages offer."""
    scorers = configured_scorers(settings)
    for name in ("awareness_scorer", "awareness_second_scorer"):
        wanted = getattr(settings, name)
        if wanted and wanted not in scorers.by_name:
            message = f"{name} ({settings.origins[name]}) is {wanted!r}, and there is none"
            yield Check("scorer", "broken", message, did_you_mean(wanted, scorers.by_name))
    for problem in scorers.problems:
        yield Check("scorer", "broken", problem.message, problem.hint)


def look_at_upstreams(settings: Settings) -> Iterator[Check]:
    """Upstream servers, where there are any."""
    path = upstreams_path(settings)
    found = inspect_upstreams(path)
    if found.errors:
        message = f"{found.errors[0].place}: {found.errors[0].message}"
        yield Check("upstreams", "broken", message, "remit check")
    if found.errors or not found.upstreams:
        return
    from remit.app.doctor.upstreams import kept_ill, obstacles, unseen  # noqa: PLC0415 - as above

    if path.stat().st_mode & 0o022:
        message = f"{path} can be written by others, and it names programs to start"
        yield Check("upstreams", "warning", message, f"chmod go-w {shlex.quote(str(path))}")
    if running_pid(Home(settings.home)) is not None:
        told = list(kept_ill(settings))
    else:
        told = [(one.name, *why) for one in found.upstreams for why in obstacles(one)]
        ill = {name for name, *_ in told}
        told += [why for why in unseen(settings, found.upstreams) if why[0] not in ill]
    for name, message, repair in told:
        yield Check("upstreams", "broken", f"{name}: {message}", repair)
    if not told:
        message = f"{len(found.upstreams)} upstream servers, and nothing wrong with them"
        yield Check("upstreams", "fine", message)
