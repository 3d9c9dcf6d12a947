"""Running a daemon here, and whether one can run: serve, demo, mcp, doctor."""

import gc
import importlib.util
import os
import resource
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click
import msgspec

from remit.app.daemon import leave, serve_until_stopped
from remit.app.logs import configure_logs
from remit.cli.commands import as_invoked
from remit.cli.options import SharedOptions, completing, with_definition_options, with_options
from remit.cli.outcome import NO, fail, next_step, print_json, say
from remit.config.settings.home import Home
from remit.config.settings.lock import running_pid
from remit.config.settings.setting import GROUPS, group_of
from remit.config.settings.table import SETTINGS
from remit.errors import InvalidDataError, RemitError

if TYPE_CHECKING:
    from remit.app.doctor.daemon import Check

MAX_DESCRIPTORS = 65_536
_THIS_RUN = "This run"
_MARKS = {"fine": ("ok", "green"), "warning": ("warn", "yellow"), "broken": ("BAD", "red")}


def _settings_options(function: Any) -> Any:
    for row in reversed(SETTINGS):
        if row.name != "home":  # a shared option already
            function = click.option(row.flag, row.name, help=row.doc)(function)
    return function


class _Grouped(click.Command):
    """Lists its many options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Those of the run first, then one section for each group of settings."""
        titles = {row.name: group_of(row.name) for row in SETTINGS if row.name != "home"}
        groups: dict[str, list[tuple[str, str]]] = {title: [] for title in (_THIS_RUN, *GROUPS)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                groups[titles.get(parameter.name or "", _THIS_RUN)].append(record)
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


@click.command(cls=_Grouped)
@_settings_options
@with_options
def serve(shared: SharedOptions, **flags: Any) -> None:
    """Run the daemon in the foreground until SIGTERM; SIGHUP reads the definitions again."""
    gc.enable()  # see __main__
    _raise_file_limit()
    settings = shared.settings(**flags)
    configure_logs(settings)

    def announce(ready: dict[str, Any]) -> None:
        if shared.as_json:
            click.echo(msgspec.json.encode(ready).decode())
        else:
            say(
                f"{click.style('ready', fg='green')}: {' '.join(ready['endpoints'].values())} "
                f"(revision {ready['revision']}, {ready['profiles']} profiles, "
                f"{ready['events']} events)"
            )
            next_step("call system:health   (in another terminal)")
        sys.stdout.flush()

    try:
        anyio.run(serve_until_stopped, settings, announce, backend_options=_loop_options())
    except* RemitError as group:
        fail(_first(group), as_json=shared.as_json)
    leave()


def _raise_file_limit() -> None:
    """Every connection is a descriptor, and libzmq aborts the process when there is none left."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _first(group: BaseExceptionGroup[RemitError]) -> RemitError:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if not isinstance(error, RemitError):
        raise error
    return error


def _loop_options() -> dict[str, Any]:

    return {"use_uvloop": importlib.util.find_spec("uvloop") is not None}


@click.command()
@with_options
def demo(shared: SharedOptions) -> None:
    """Watch three scripted agents work on a real daemon; no network, nothing is kept."""
    from remit.app.demo import run_demo  # noqa: PLC0415 - memory that a daemon need not hold

    folder = Path(tempfile.mkdtemp(prefix="remit-demo-"))
    settings = shared.settings(log_level="error")
    settings = _in(settings, folder)
    configure_logs(settings)
    steps: list[dict[str, Any]] = []

    def show(kind: str, facts: dict[str, Any]) -> None:
        if shared.as_json:
            steps.append({"kind": kind, **facts})
        else:
            say(_LINES[kind](facts))
            sys.stdout.flush()

    try:
        totals = anyio.run(run_demo, settings, show)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if shared.as_json:
        print_json({"steps": steps, "totals": totals})
        return
    say(f"\n{totals['allowed']} allowed, {totals['denied']} denied, each with its reason")
    next_step("why base_multi_agent agent:terminate")


def _in(settings: Any, folder: Path) -> Any:
    """The shipped definitions in a home of their own, whatever is configured."""
    return msgspec.structs.replace(
        settings, home=folder, catalogue=None, compositions=None, handlers=(), endpoint=""
    )


def _daemon(facts: dict[str, Any]) -> str:
    return (
        f"a daemon with {facts['profiles']} profiles and {facts['events']} events; "
        "lead, scout and worker begin\n"
    )


def _step(facts: dict[str, Any]) -> str:
    mark = click.style("allow", fg="green") if facts["ok"] else click.style("DENY ", fg="red")
    line = f"{mark}  {facts['agent']:7} {facts['event']:20} {facts['why']}"
    if facts["ok"]:
        return line
    places = ", ".join(facts["rules"]) or "nothing grants it"
    return f"{line}\n         {facts['reason']}: {places}  (decision {facts['decision']})"


def _bill(facts: dict[str, Any]) -> str:
    saved = 100 - round(100 * facts["sent"] / max(1, facts["full_dump"]))
    return (
        f"bill   {facts['agent']:7} {facts['tools']} tools in about {facts['sent']} tokens, "
        f"{saved} % less than {facts['full_dump']} with all schemas"
    )


_LINES = {"daemon": _daemon, "step": _step, "bill": _bill}


@click.command()
@click.option(
    "--agent",
    default="",
    help="Serve this agent; its key lies in the home.",
    shell_complete=completing("agent"),
)
@click.option(
    "--profile",
    default="",
    help="Serve a new agent with this profile, while we run.",
    shell_complete=completing("profile"),
)
@click.option("--key", default="", help="Key file of the agent, or of whoever makes one.")
@click.option("--session", help="The session that narrows every call.")
@click.option("--embedded", is_flag=True, help="Run a daemon in here when none runs.")
@with_options
def mcp(
    shared: SharedOptions,
    agent: str,
    profile: str,
    key: str,
    *,
    session: str | None,
    embedded: bool,
) -> None:
    """Serve MCP over standard input and output, for a host that starts this command."""
    from remit.app.mcp_stdio import Who, serve_mcp  # noqa: PLC0415 - as in demo

    if agent and profile:
        raise InvalidDataError("name --agent or --profile, not both")
    if not (agent or profile or key or os.environ.get("REMIT_KEY")):
        hint = "remit mcp --profile PROFILE, or --agent AGENT"
        raise InvalidDataError("whose tools are to be served?", hint=hint)
    gc.enable()  # see __main__
    settings = shared.settings()
    configure_logs(settings)
    try:
        anyio.run(
            partial(serve_mcp, settings, Who(agent, profile, key, session), embedded=embedded)
        )
    except RemitError as error:
        try:
            fail(error, as_json=shared.as_json)
        except SystemExit as end:
            # A thread may wait for the host's next word for ever.
            leave(end.code if isinstance(end.code, int) else 1)
            raise
    leave()


@click.command()
@with_definition_options
def doctor(shared: SharedOptions) -> None:
    """Find what is wrong with this installation, and say how to repair it."""
    from remit.app.doctor.report import examine  # noqa: PLC0415 - as in demo

    settings = shared.settings()
    checks = examine(settings)
    healthy = all(check.state != "broken" for check in checks)
    if shared.as_json:
        print_json({"ok": healthy, "checks": [check.to_json() for check in checks]})
    else:
        for check in checks:
            _say_check(check)
        say(_verdict(checks))
        runs = running_pid(Home(settings.home)) is not None
        next_step(("agents" if runs else "serve") if healthy else "doctor")
    sys.exit(0 if healthy else NO)


def _verdict(checks: list["Check"]) -> str:
    if any(check.state == "broken" for check in checks):
        return "repair what is marked BAD, then run doctor again"
    told = any(check.state == "warning" for check in checks)
    return "nothing is broken; look at what is marked warn" if told else "all is well"


def _say_check(check: "Check") -> None:
    word, colour = _MARKS[check.state]
    say(f"{click.style(f'{word:5}', fg=colour)}{check.name:14} {check.message}")
    if check.repair:
        say(f"     repair: {as_invoked(check.repair)}")
