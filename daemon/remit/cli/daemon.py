"""Running a daemon here: serve."""

import gc
import importlib.util
import resource
import sys
from typing import Any

import anyio
import click
import msgspec

from remit.app.daemon import leave, serve_until_stopped
from remit.app.logs import configure_logs
from remit.cli.options import SharedOptions, with_options
from remit.cli.outcome import fail, next_step, say
from remit.config.settings.setting import GROUPS, group_of
from remit.config.settings.table import SETTINGS
from remit.errors import RemitError

MAX_DESCRIPTORS = 65_536
_THIS_RUN = "This run"


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
