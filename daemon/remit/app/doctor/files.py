"""What `remit doctor` finds out about files: store, definitions, skills, cards, upstreams."""

import os
import shlex
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from remit.app.doctor.daemon import Check, State, told_by_daemon
from remit.app.offline_cards import read_cards
from remit.app.workbench import Workbench, open_workbench, read_standing
from remit.config.definitions.launchers import Commands, launcher_warnings
from remit.config.settings.home import Home
from remit.config.settings.launch_user import launch_user
from remit.config.settings.lock import running_pid
from remit.config.settings.table import Settings
from remit.errors import DefinitionError, SettingsError, StoreError
from remit.features.cards.scorers import configured_scorers
from remit.features.cards.views import unbound
from remit.features.discovery.setup import gatherer
from remit.features.skills.views import binding_problems
from remit.features.upstreams.file import inspect_upstreams, upstreams_path
from remit.features.upstreams.pins import read_pins
from remit.features.upstreams.secrets import find_secret
from remit.model.names import did_you_mean
from remit.model.upstream import Upstream

MOST = 20
"""Files of one kind that are told one by one."""
Told = dict[str, object]
"""A problem as it travels: `Problem.to_json`, with `severity`."""
_UNSEEN = "nobody has asked it for its tools yet, so nobody has one"


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
    if path.stat().st_mode & 0o022:
        message = f"{path} can be written by others, and it names programs to start"
        yield Check("upstreams", "warning", message, f"chmod go-w {shlex.quote(str(path))}")
    if running_pid(Home(settings.home)) is not None:
        told = list(_kept_ill(settings))
    else:
        told = [(one.name, *why) for one in found.upstreams for why in _obstacles(one)]
        ill = {name for name, *_ in told}
        told += [why for why in _unseen(settings, found.upstreams) if why[0] not in ill]
    for name, message, repair in told:
        yield Check("upstreams", "broken", f"{name}: {message}", repair)
    if not told:
        message = f"{len(found.upstreams)} upstream servers, and nothing wrong with them"
        yield Check("upstreams", "fine", message)


def _kept_ill(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """The servers that the running daemon cannot keep, each with why and the repair.

    Its variables are not those of this shell, so it is asked.
    """
    answer = told_by_daemon(settings, "upstream:list")
    items = [] if answer is None else answer["items"]
    for item in items:
        why = item.get("problem") or (item["reason"] if item["state"] == "failing" else "")
        if not why and item["listed_at"] is None:
            why = _UNSEEN
        if why:
            yield item["name"], why, f"remit upstream check {item['name']}"


def _unseen(settings: Settings, upstreams: tuple[Upstream, ...]) -> Iterator[tuple[str, str, str]]:
    """The servers that nobody has ever asked for their tools, each with the repair."""
    known = read_pins(Home(settings.home).upstreams, [one.name for one in upstreams]).known
    for one in upstreams:
        pins = known.get(one.name)
        if pins is None or not (pins.listed_at or pins.tools):
            yield one.name, _UNSEEN, f"remit upstream check {one.name}"


def _obstacles(upstream: Upstream) -> Iterator[tuple[str, str]]:
    """Why a server cannot start from here, each with the repair."""
    if upstream.command and not _is_found(upstream):
        repair = "install it, or write its full path into upstreams.yaml"
        yield f"there is no program {upstream.command}", repair
    if upstream.cwd and not Path(upstream.cwd).is_dir():
        yield f"there is no folder {upstream.cwd}", "make it, or repair cwd in upstreams.yaml"
    for name in sorted({*upstream.secret_env.values(), *upstream.secret_headers.values()}):
        secret = find_secret(name)
        if secret.value is None:
            repair = f"export {name}=…, or {name}_FILE=PATH, where the daemon is started"
            yield f"the secret {name} is missing: {secret.why}", repair


def _is_found(upstream: Upstream) -> bool:
    if "/" in upstream.command:
        named = Path(upstream.cwd or ".") / Path(upstream.command).expanduser()
        return shutil.which(str(named)) is not None
    path = upstream.env.get("PATH") or os.environ.get("PATH")
    return shutil.which(upstream.command, path=path) is not None
