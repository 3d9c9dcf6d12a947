"""Writing to upstreams.yaml, and whether a running daemon has taken it up; upstream import."""

import shlex
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from remit.cli.connection import daemon_answers
from remit.cli.options import SharedOptions, with_options
from remit.cli.outcome import (
    NO,
    counted,
    next_step,
    print_json,
    say,
    say_hint,
)
from remit.config.settings.home import Home
from remit.config.settings.lock import running_pid
from remit.config.settings.table import Settings
from remit.errors import ConflictError, DefinitionError, NotFoundError, RemitError
from remit.features.upstreams.file import (
    UpstreamFile,
    change_upstreams,
    inspect_upstreams,
    upstreams_path,
    with_servers,
)
from remit.features.upstreams.hosts import (
    HostFile,
    HostImport,
    import_servers,
    read_host_file,
    server_names,
)
from remit.features.upstreams.kinds import TRUST
from remit.model.names import did_you_mean

_PATIENCE = 5.0
_PAUSE = 0.05
_FOUND = click.Path(exists=True, dir_okay=False, path_type=Path)


def write_servers(
    settings: Settings, entries: Mapping[str, Mapping[str, Any]], *, replace: bool
) -> dict[str, Any]:
    """Put servers into the file, all of them or none; answers whether they are in force.

    Raises:
        ConflictError: one of them is there already, and is not to be replaced.
    """
    path = upstreams_path(settings)
    there = {one.name for one in readable(path).upstreams}
    taken = sorted(there & entries.keys())
    if taken and not replace:
        hint = "give another name, or say --replace"
        raise ConflictError(f"{', '.join(taken)}: already in {path}", hint=hint)
    change_upstreams(path, lambda text: with_servers(text, entries, path))
    return in_force(settings, entries, replaced=bool(taken))


def readable(path: Path) -> UpstreamFile:
    """What the file says; an empty one says nothing.

    Raises:
        DefinitionError: it has mistakes, and is not edited before these are repaired.
    """
    found = inspect_upstreams(path)
    if found.errors and [problem.code for problem in found.errors] != ["empty_file"]:
        raise DefinitionError(found.errors)
    return found


def in_force(
    settings: Settings, there: Iterable[str], gone: Iterable[str] = (), *, replaced: bool = False
) -> dict[str, Any]:
    """Tell whether the daemon has taken up an edit: it reads the file by itself, after a moment."""
    told: dict[str, Any] = {"needs_reload": False}
    if running_pid(Home(settings.home)) is None:
        return told | _told(is_there=False, message="no daemon runs: it counts from the next start")
    if replaced:  # nothing that the daemon tells shows which of two entries it goes by
        return told | _told(is_there=None, message="the daemon takes it up in a moment")
    try:
        known = _wait_for(settings, set(there), set(gone))
    except RemitError as error:
        message = f"the daemon cannot be asked: {error.message}"
        return told | _told(is_there=None, message=message)
    if known:
        return told | _told(is_there=True, message="the daemon has it in force")
    message = "the daemon has not taken it up: see remit upstream list, then remit reload"
    return {"needs_reload": True} | _told(is_there=False, message=message)


def _told(*, is_there: bool | None, message: str) -> dict[str, Any]:
    return {"in_force": is_there, "message": message}


def _wait_for(settings: Settings, there: set[str], gone: set[str]) -> bool:

    deadline = time.monotonic() + _PATIENCE
    with daemon_answers(settings) as daemon:
        while daemon is not None and time.monotonic() < deadline:
            known = {one["name"] for one in daemon.upstreams()["items"]}
            if there <= known and not gone & known:
                return True
            time.sleep(_PAUSE)
    return False


@click.command("import")
@click.argument("file", type=_FOUND)
@click.option("--only", multiple=True, help="Only this server, by its name in FILE.")
@click.option("--trust", type=click.Choice(TRUST), help="Who trusts their tools; review.")
@click.option("--replace", is_flag=True, help="Take the place of servers of the same name.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@with_options
def import_(
    shared: SharedOptions,
    file: Path,
    *,
    only: tuple[str, ...],
    trust: str | None,
    replace: bool,
    dry_run: bool,
) -> None:
    """Take over the servers of a host's FILE: Claude Code, Claude Desktop, Cursor or VS Code.

    All or nothing. No secret is written down: each gets a name, and you are told which to set.
    """
    settings = shared.servers()
    path = upstreams_path(settings)
    host = read_host_file(file, Path.cwd())
    chosen = _chosen(host.servers, only)
    extra = {"trust": trust} if trust else {}
    found = import_servers(host, chosen, extra, _secrets_in(path))
    entries = {one.name: one.entry for one in found.taken}
    report = _import_report(file, path, host, found)
    if found.obstacles or not entries:
        _refuse_import(shared, report, [one.source for one in found.taken])
    if not dry_run:
        report |= {"written": True, **write_servers(settings, entries, replace=replace)}
    if shared.as_json:
        print_json(report)
    else:
        _say_import(report, entries)


def _chosen(servers: Mapping[str, Any], only: tuple[str, ...]) -> list[str]:

    ours = {name: source for source, name in server_names(servers).items()}
    for name in only:
        if name not in servers and name not in ours:
            hint = did_you_mean(name, servers)
            raise NotFoundError(f"the file has no server {name!r}", hint=hint)
    return [name if name in servers else ours[name] for name in only] or list(servers)


def _secrets_in(path: Path) -> set[str]:
    """Names that mean something already; one for a server that is replaced may not fit any more."""
    there = readable(path).upstreams
    return {n for one in there for n in (*one.secret_env.values(), *one.secret_headers.values())}


def _import_report(file: Path, path: Path, host: "HostFile", found: "HostImport") -> dict[str, Any]:
    return {
        "from": str(file),
        "file": str(path),
        "written": False,
        "servers": [
            {
                "name": one.name,
                "source": one.source,
                "reached": _reached(one.entry),
                "notes": list(one.notes),
            }
            for one in found.taken
        ],
        "secrets": [
            {"name": need.name, "server": need.server, "for": need.place, "was": need.was}
            for one in found.taken
            for need in one.needs
        ],
        "skipped": [{"source": one.source, "message": one.message} for one in found.skipped],
        "obstacles": [
            {"source": one.source, "message": one.message, "hint": one.hint}
            for one in found.obstacles
        ],
        "notes": [*host.notes, *_unused_inputs(host, found)],
    }


def _unused_inputs(host: "HostFile", found: "HostImport") -> list[str]:
    used = " ".join(need.was for one in found.taken for need in one.needs)
    unused = [name for name in sorted(host.inputs) if f"${{input:{name}}}" not in used]
    return [f"the input {name!r} is used by no server that was taken over" for name in unused]


def _reached(entry: Mapping[str, Any]) -> str:
    return str(entry.get("url") or shlex.join([entry["command"], *entry.get("args", ())]))


def _refuse_import(shared: SharedOptions, report: dict[str, Any], good: list[str]) -> None:
    """Nothing is written; what can be taken over is named as the next command."""
    if shared.as_json:
        print_json(report)
    else:
        for one in report["obstacles"]:
            click.echo(f"{click.style(one['source'], bold=True)}: {one['message']}", err=True)
            say_hint(one["hint"], err=True)
        _say_left_out(report)
        count = len(report["obstacles"])
        why = f"{counted(count, 'server')} cannot be taken over" if count else "no server is left"
        say(f"nothing was written: {why}")
        if good:
            words = ["upstream", "import", report["from"]]
            next_step(shlex.join([*words, *(w for name in good for w in ("--only", name))]))
    sys.exit(NO)


def _say_import(report: dict[str, Any], entries: Mapping[str, Mapping[str, Any]]) -> None:
    for one in report["servers"]:
        renamed = f"  (was {one['source']!r})" if one["source"] != one["name"] else ""
        say(f"{click.style(one['name'], bold=True):24} {one['reached']}{renamed}")
    _say_left_out(report)
    if report["secrets"]:
        say("set these where the daemon is started, each as a variable or NAME_FILE with a path:")
        for need in report["secrets"]:
            say(f"  {need['name']:32} for {need['server']}, {need['for']}: {need['was']}")
    taken = counted(len(entries), "server")
    if not report["written"]:
        say(f"nothing was written: {taken} would come into {report['file']}")
        next_step(f"upstream import {shlex.quote(report['from'])}")
        return
    say(f"{taken} came into {report['file']}")
    say(report["message"])
    next_step("upstream check")


def _say_left_out(report: dict[str, Any]) -> None:
    for one in report["servers"]:
        for note in one["notes"]:
            say(click.style(f"  {one['name']}: {note}", fg="yellow"))
    for one in report["skipped"]:
        say(click.style(f"  {one['source']} was left out: {one['message']}", fg="yellow"))
    for note in report["notes"]:
        say(click.style(f"  {note}", fg="yellow"))
