"""Running the daemon, and calling it: serve, call."""

import gc
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
import msgspec

from remit.cli import completion
from remit.cli.options import SECONDS, Asked, asked
from remit.cli.outcome import fail, next_step, print_json, say
from remit.config.settings.setting import GROUPS, group_of
from remit.config.settings.table import SETTINGS
from remit.config.strict.json import refuse_duplicates
from remit.errors import InvalidDataError, RemitError, with_code

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
@asked
def serve(ask: Asked, **flags: Any) -> None:
    """Run the daemon in the foreground until SIGTERM; SIGHUP reads the definitions again."""
    # The daemon's parts cost 200 ms: nobody else should pay for them.
    import anyio  # noqa: PLC0415

    from remit.app.daemon import leave, serve_until_stopped  # noqa: PLC0415
    from remit.app.logs import configure_logs  # noqa: PLC0415

    gc.enable()  # see __main__
    _raise_file_limit()
    settings = ask.settings(**flags)
    configure_logs(settings)

    def announce(ready: dict[str, Any]) -> None:
        if ask.as_json:
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
        fail(_first(group), as_json=ask.as_json)
    leave()


def _raise_file_limit() -> None:
    """Every connection is a descriptor, and libzmq aborts the process when there is none left."""
    import resource  # noqa: PLC0415 - only the daemon needs it

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
    import importlib.util  # noqa: PLC0415

    return {"use_uvloop": importlib.util.find_spec("uvloop") is not None}


@click.command()
@click.argument("event", shell_complete=completion.events)
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--data", help="The whole request as JSON; '-' reads it from standard input.")
@click.option("--timeout", type=SECONDS, default=30.0, help="Seconds to wait for the answer.")
@click.option("--key", help="Key file to call with; REMIT_KEY, else the operator's.")
@click.option("--session", help="The session to call in.")
@asked
def call(  # noqa: PLR0913 - one argument an option
    ask: Asked,
    event: str,
    pairs: tuple[str, ...],
    *,
    data: str | None,
    timeout: float,
    key: str | None,
    session: str | None,
) -> None:
    """Call EVENT of the running daemon; a value that is JSON is taken as JSON, else as text."""
    from remit.cli.connection import connected  # noqa: PLC0415 - zmq, only with a daemon
    from remit.kernel.dispatch.decode import check_value  # noqa: PLC0415 - the same

    request = _request_data(pairs, data)
    check_value(request)
    try:
        with connected(ask.settings(), key) as remit:
            answer = remit.ask(event, request, timeout=timeout, session=session)
    except RemitError as error:
        raise _with_quotes(error, pairs) from error
    for told in answer.warnings:
        click.echo(f"warning: {told['message']}\n    hint: {told['hint']}", err=True)
    print_json(answer.data)


def _with_quotes(error: RemitError, pairs: tuple[str, ...]) -> RemitError:
    """Where a text was wanted, and the text given is JSON as well: say how to write it."""
    field = str(error.details.get("path", "")).removeprefix("$.")
    given = {key: value for key, _, value in (pair.partition("=") for pair in pairs)}
    is_text = field in given and isinstance(_value(given[field]), str)
    wants_text = re.match(r"Expected `(?:[^`]*\W)?str\b", error.message)
    if error.code != InvalidDataError.code or field not in given or is_text or not wants_text:
        return error
    text = msgspec.json.encode(given[field]).decode()
    hint = f"{given[field]} is read as JSON; as text it is written {field}={shlex.quote(text)}"
    return with_code(error.code, error.message, hint, error.details)


def _request_data(pairs: tuple[str, ...], text: str | None) -> dict[str, Any]:
    if text is not None:
        if pairs:
            raise InvalidDataError("give KEY=VALUE pairs or --data, not both")
        try:
            raw = sys.stdin.buffer.read() if text == "-" else text
            data = msgspec.json.decode(raw)
            refuse_duplicates(raw, "--data")
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise InvalidDataError(f"--data is not JSON: {error}") from error
        if not isinstance(data, dict):
            raise InvalidDataError("--data must be a JSON object", hint='as in \'{"key": "a"}\'')
        return data
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise InvalidDataError(f"{pair!r} is not of the form key=value")
        if key in found:
            raise InvalidDataError(f"{key!r} is given twice", hint="keep one of them")
        found[key] = _value(value)
    return found


def _value(text: str) -> Any:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidDataError("an argument is not UTF-8 text") from error
    try:
        found = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return text
    if isinstance(found, dict | list):
        refuse_duplicates(text, text)
    return found


# `remit demo`: the first thing a newcomer types.


@click.command()
@asked
def demo(ask: Asked) -> None:
    """Watch three scripted agents work on a real daemon; no network, nothing is kept."""
    import anyio  # noqa: PLC0415 - the daemon's parts, only here

    from remit.app.demo import run_demo  # noqa: PLC0415
    from remit.app.logs import configure_logs  # noqa: PLC0415

    folder = Path(tempfile.mkdtemp(prefix="remit-demo-"))
    settings = ask.settings(log_level="error")
    settings = _in(settings, folder)
    configure_logs(settings)
    steps: list[dict[str, Any]] = []

    def show(kind: str, facts: dict[str, Any]) -> None:
        if ask.as_json:
            steps.append({"kind": kind, **facts})
        else:
            say(_LINES[kind](facts))
            sys.stdout.flush()

    try:
        totals = anyio.run(run_demo, settings, show)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if ask.as_json:
        print_json({"steps": steps, "totals": totals})
        return
    say(f"\n{totals['allowed']} allowed, {totals['denied']} denied, each with its reason")
    next_step("why base_multi_agent agent:terminate")


def _in(settings: Any, folder: Path) -> Any:
    """The shipped definitions in a home of their own, whatever is configured."""
    import msgspec  # noqa: PLC0415

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
