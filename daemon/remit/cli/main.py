"""The `remit` command: a group that imports a command only when it is called."""

import importlib
import os
import sys
from typing import Any

import click

from remit import __version__
from remit.cli.commands import COMMANDS
from remit.cli.invocation import as_invoked, invoked_as
from remit.cli.outcome import NO, fail, print_json
from remit.errors import RemitError

COMPLETE = "_REMIT_COMPLETE"
"""Set by the completion script of a shell."""


class LazyGroup(click.Group):
    """Knows its commands by name and imports one only when it runs."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """In the order of the table: questions first, upkeep last."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the module of a command."""
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"remit.cli.{COMMANDS[name][0]}")
        command = getattr(module, name.replace("-", "_"))
        return command if isinstance(command, click.Command) else None

    def get_help(self, ctx: click.Context) -> str:
        """The help, with commands as this one was called."""
        return as_invoked(super().get_help(ctx))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Offer the commands from the table, without importing any of them."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only at the tab key

        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        found = COMMANDS.items()
        return [CompletionItem(n, help=doc) for n, (_, doc) in found if n.startswith(incomplete)]

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the nearest command for an unknown one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from remit.model.suggest import did_you_mean  # noqa: PLC0415 - only for a mistake

            hint = did_you_mean(args[0], COMMANDS)
            ctx.fail(f"there is no command {args[0]!r}. {hint}".strip())
        return super().resolve_command(ctx, args)


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
        from remit.cli.completion import offer_and_exit  # noqa: PLC0415 - only at the tab key

        offer_and_exit(remit, COMPLETE)
    given = sys.argv[1:] if arguments is None else arguments
    # What stands behind `--` is meant for somebody else.
    as_json = "--json" in given[: given.index("--") if "--" in given else None]
    try:
        if as_json:
            return _main_for_programs(given)
        return remit.main(given or ["--help"], standalone_mode=True, **_program())
    except RemitError as error:
        return fail(error, as_json=as_json)
