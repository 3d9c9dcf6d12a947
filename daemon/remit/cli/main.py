"""The `remit` command: its options, and how every failure of it ends."""

import os
import sys
from typing import Any

import click

from remit import __version__
from remit.cli.commands import COMPLETE, LazyGroup, invoked_as, module_of
from remit.cli.outcome import NO, fail, print_json
from remit.errors import RemitError


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--home", help="State directory; REMIT_HOME, else the XDG state directory.")
@click.version_option(__version__, prog_name="remit")
@click.pass_context
def remit(ctx: click.Context, home: str | None) -> None:
    """Decide, explain and serve what each agent of a fleet may do.

    Start with:  remit check, then remit resolve observer
    """
    ctx.obj = {"home": home}


def _program() -> dict[str, str]:
    return {"prog_name": invoked_as(), "complete_var": COMPLETE}


def _main_for_programs(given: list[str]) -> Any:
    """The same, but what click says about wrong words is an error like any other."""
    try:
        code = remit.main(given, standalone_mode=False, **_program())
    except click.ClickException as error:
        error.show()
        body = {"code": "invalid_data", "message": error.format_message(), "hint": ""}
        usage = getattr(error, "ctx", None)
        body["hint"] = f"{usage.command_path} --help" if usage is not None else "remit --help"
        print_json({"error": body | {"details": {}}})
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(NO)
    except BrokenPipeError:  # whoever read has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(NO)
    sys.exit(code if isinstance(code, int) else 0)


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line; every failure that we know ends in a message and its exit code."""
    if COMPLETE in os.environ:
        module_of("completion").offer_and_exit(remit)
    given = sys.argv[1:] if arguments is None else arguments
    # What stands behind `--` is meant for somebody else.
    as_json = "--json" in given[: given.index("--") if "--" in given else None]
    try:
        if as_json:
            return _main_for_programs(given)
        return remit.main(given or ["--help"], standalone_mode=True, **_program())
    except RemitError as error:
        return fail(error, as_json=as_json)
