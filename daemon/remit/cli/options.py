"""What nearly every command is asked with: where the definitions are, which home, text or JSON."""

import functools
import importlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from remit.config.settings.load import load_settings
from remit.config.settings.lock import as_served, check_served
from remit.config.settings.table import Settings

Function = TypeVar("Function", bound=Callable[..., Any])


class _Seconds(click.ParamType[float]):
    """A time to wait: more than nothing, and it ends."""

    name = "seconds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read a number of seconds."""
        try:
            found = float(value)
        except ValueError:
            found = 0.0
        if not 0 < found <= MOST_SECONDS:
            self.fail(f"{value!r} is no number of seconds above 0, up to 86400", param, ctx)
        return found


MOST_SECONDS = 86_400.0
SECONDS = _Seconds()
CLIENT_NAME = r"[a-z][a-z0-9_-]{0,63}"


class SharedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The shared options of one run of a command."""

    as_json: bool
    home: str | None
    catalogue: str | None = None
    compositions: str | None = None
    events: Path | None = None

    @property
    def about_files(self) -> bool:
        """Tell whether definitions were named: then they are meant, and not a running daemon's."""
        return any((self.catalogue, self.compositions, self.events))

    def definitions(self, **flags: Any) -> Settings:
        """The settings for a question about definitions.

        Raises:
            SettingsError: no files were named, and the running daemon serves others than are set
                here: whatever was answered, it could be meant otherwise.
        """
        settings = self.settings(**flags)
        if not self.about_files:
            options = [one.name for one in click.get_current_context().command.params]
            check_served(settings, may_name_files="catalogue" in options)
        return settings

    def servers(self) -> Settings:
        """The settings for work on the file of upstream servers.

        Raises:
            SettingsError: the running daemon has another one.
        """
        settings = self.settings()
        check_served(settings, names=("upstreams",), may_name_files=False)
        return settings

    def settings(self, **flags: Any) -> Settings:
        """The settings for this run, with further flags on top."""
        root: Mapping[str, Any] = click.get_current_context().find_root().obj or {}
        flags["home"] = self.home or root.get("home")
        flags.setdefault("catalogue", self.catalogue)
        flags.setdefault("compositions", self.compositions)
        return as_served(load_settings(flags, os.environ, str(Path.cwd())))


Complete = Callable[[click.Context, click.Parameter, str], list[Any]]


def completing(kind: str) -> Complete:
    """The callback that offers values of a kind; what it needs is imported at the tab key.

    Args:
        kind: a key of `remit.cli.completion.OFFERS`.
    """

    def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[Any]:
        completion = importlib.import_module("remit.cli.completion")
        found: list[Any] = completion.offers(kind, ctx, incomplete)
        return found

    return complete


_SHARED = (
    click.option("--json", "as_json", is_flag=True, help="Answer as JSON."),
    click.option("--home", help="State directory."),
)
_DEFINITIONS = (
    click.option(
        "--events",
        type=click.Path(path_type=Path),
        help="Event names, one a line, instead of the registered handlers.",
    ),
    click.option("--compositions", help="Folder of profiles; beside the catalogue when absent."),
    click.option("--catalogue", help="capabilities.yaml; the shipped one when absent."),
)


def with_options(function: Function) -> Callable[..., Any]:
    """Give a command the shared options as its first argument."""
    return _with_options(function, _SHARED, ("as_json", "home"))


def with_definition_options(function: Function) -> Callable[..., Any]:
    """The same for a command that works on definitions, with or without a daemon."""
    names = ("as_json", "home", "catalogue", "compositions", "events")
    return _with_options(function, _SHARED + _DEFINITIONS, names)


def _with_options(
    function: Function, declared: tuple[Callable[..., Any], ...], names: tuple[str, ...]
) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        shared = SharedOptions(**{name: options.pop(name) for name in names})
        return function(shared, *arguments, **options)

    wrapped: Callable[..., Any] = run
    for option in declared:
        wrapped = option(wrapped)
    return wrapped


def variables_of(pairs: tuple[str, ...], types: Mapping[str, str]) -> dict[str, Any]:
    """Read `name=value` options by the declared types; what does not fit stays text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"{pair!r} is not of the form name=value")
        found[name] = _READERS[types.get(name, "string")](text)
    return found


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


_READERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "integer": lambda text: int(text) if text.removeprefix("-").isdecimal() else text,
    "number": _number,
    "boolean": lambda text: {"true": True, "false": False}.get(text, text),
}
