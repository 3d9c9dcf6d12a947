"""What `remit doctor` looks at: Python, the home and its keys, store, definitions, upstreams."""

import importlib.util
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from remit.app.audit_files import head_of_files
from remit.app.doctor.daemon import Check, State, look_at_daemon, nearest_there, told_by_daemon
from remit.app.offline_cards import read_cards
from remit.app.workbench import Workbench, open_workbench, read_standing
from remit.config.definitions.launchers import Commands, launcher_warnings
from remit.config.settings.home import Home, inspect_home
from remit.config.settings.launch_user import launch_user
from remit.config.settings.lock import running_pid
from remit.config.settings.table import Settings
from remit.errors import DefinitionError, RemitError, SettingsError, StoreError
from remit.features.cards.scorers import configured_scorers
from remit.features.cards.views import unbound
from remit.features.discovery.setup import gatherer
from remit.features.skills.views import binding_problems
from remit.features.upstreams.file import inspect_upstreams, upstreams_path
from remit.features.upstreams.pins import read_pins
from remit.features.upstreams.secrets import find_secret
from remit.model.names import did_you_mean
from remit.model.upstream import Upstream

OLDEST_PYTHON = (3, 11)
_SECRET = 0o600
_NEEDED = ("anyio", "click", "msgspec", "structlog", "yaml", "zmq")
MOST = 20
"""Files of one kind that are told one by one."""
Told = dict[str, object]
"""A problem as it travels: `Problem.to_json`, with `severity`."""
_UNSEEN = "nobody has asked it for its tools yet, so nobody has one"


def examine(settings: Settings) -> list[Check]:
    """Look at everything; a failing look is itself a finding."""
    looks: tuple[Callable[[Settings], Iterator[Check]], ...] = (
        _python,
        _packages,
        _home,
        _keys,
        _store,
        _audit,
        look_at_daemon,
        _definitions,
        _scorers,
        _upstreams,
    )
    return [check for look in looks for check in _looked(look, settings)]


def _audit(settings: Settings) -> Iterator[Check]:
    """Whether the audit ends where its head says; the whole proof is a command of its own."""
    home = Home(settings.home)
    if home.audit_head.exists():
        head = head_of_files(home)
        if head.problem:
            yield Check("audit", "broken", head.problem, "remit audit verify")


def _looked(look: Callable[[Settings], Iterator[Check]], settings: Settings) -> Iterator[Check]:
    """What a look finds; one that the system does not let us finish finds that."""
    try:
        yield from look(settings)
    except (OSError, RemitError) as error:
        name = look.__name__.removeprefix("look_at_").strip("_")
        message, hint = str(error), ""
        if isinstance(error, RemitError):
            message, hint = error.message, error.hint
        yield Check(name, "broken", message, hint or "make it yours, or choose another with --home")


def _python(_settings: Settings) -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        yield Check("python", "broken", f"{version} is too old", "install python 3.11 or newer")
    else:
        yield Check("python", "fine", f"{version} at {sys.executable}")


def _packages(_settings: Settings) -> Iterator[Check]:
    missing = [name for name in _NEEDED if not _is_installed(name)]
    if missing:
        repair = "rm -rf .venv && ./tools/run, or pip install --force-reinstall remit"
        yield Check("packages", "broken", f"not installed: {', '.join(missing)}", repair)
    else:
        yield Check("packages", "fine", "everything the daemon needs is installed")


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _home(settings: Settings) -> Iterator[Check]:
    home = Home(settings.home)
    if not home.path.exists():
        above = nearest_there(home.path)
        if os.access(above, os.W_OK | os.X_OK):
            yield Check("home", "fine", f"{home.path} will be made at the first start")
        else:
            message = f"{home.path} cannot be made: {above} is read-only for you"
            yield Check("home", "broken", message, "choose another with --home")
        return
    findings, is_writable = list(inspect_home(home)), os.access(home.path, os.W_OK | os.X_OK)
    for finding in findings:
        # A secret key that others may read is refused by clients, whatever the next start does.
        name = "keys" if finding.mode == _SECRET else "home"
        is_broken = finding.mode in (None, _SECRET) or not is_writable
        yield Check(name, "broken" if is_broken else "warning", finding.message, finding.repair)
        if not is_writable:
            return  # the rest comes of it
    if not findings:
        yield Check("home", "fine", f"{home.path} is yours alone")


def _keys(settings: Settings) -> Iterator[Check]:
    """Keys that are there but cannot be used; the next start would stop at them."""
    home = Home(settings.home)
    there = [path for path in (home.server_key, home.operator_key) if path.is_file()]
    if not there:
        return
    from remit_client.errors import RemitError as ClientError  # noqa: PLC0415
    from remit_client.keys import load_key  # noqa: PLC0415 - zmq, only when there are keys

    for path in there:
        try:
            load_key(path)
        except ClientError as error:
            # Loose modes are told with the home.
            if not path.stat().st_mode & 0o077:
                repair = "restore it from a backup; a new server key locks out all who know the old"
                yield Check("keys", "broken", error.message, repair)


# ---- what is written in files: store, definitions, skills, cards, upstreams ----


def _store(settings: Settings) -> Iterator[Check]:
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


def _definitions(settings: Settings) -> Iterator[Check]:
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


def _scorers(settings: Settings) -> Iterator[Check]:
    """The scorers of cards: those that are wanted, and those that packages offer."""
    scorers = configured_scorers(settings)
    for name in ("awareness_scorer", "awareness_second_scorer"):
        wanted = getattr(settings, name)
        if wanted and wanted not in scorers.by_name:
            message = f"{name} ({settings.origins[name]}) is {wanted!r}, and there is none"
            yield Check("scorer", "broken", message, did_you_mean(wanted, scorers.by_name))
    for problem in scorers.problems:
        yield Check("scorer", "broken", problem.message, problem.hint)


def _upstreams(settings: Settings) -> Iterator[Check]:
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
