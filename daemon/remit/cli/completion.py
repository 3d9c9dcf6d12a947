"""What the shell offers at the tab key: names of profiles, agents, events, capabilities, reviews.

A completion never fails and never prints anything else: whatever goes wrong, it offers nothing.
Nothing is asked that could wait: names come from the files and the store of the home, and only
reviews from the daemon.
"""

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from remit.config.settings_table import Settings

_PATIENCE = 2.0
"""Seconds for the daemon to list its reviews."""

Offer = Callable[["Settings"], Iterable[str]]
Complete = Callable[[click.Context, click.Parameter, str], list["CompletionItem[Any]"]]


def _completing(*offers: Offer) -> Complete:
    """Make the callback of a parameter out of what may stand there."""

    def complete(
        ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list["CompletionItem[Any]"]:
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only at the tab key

        found: set[str] = set()
        for offer in offers:
            try:
                with redirect_stdout(sys.stderr):  # what a plug-in prints is no name
                    found.update(offer(_settings(ctx)))
            except (Exception, SystemExit):  # noqa: S112 - the other names are still of use
                continue
        return [CompletionItem(name) for name in sorted(found) if name.startswith(incomplete)]

    return complete


def _settings(ctx: click.Context) -> "Settings":
    from remit.config.served import as_served  # noqa: PLC0415 - only at the tab key
    from remit.config.settings import load_settings  # noqa: PLC0415

    flags = {"home": ctx.params.get("home") or ctx.find_root().params.get("home")}
    flags |= {name: ctx.params.get(name) for name in ("catalogue", "compositions")}
    return as_served(load_settings(flags, os.environ, str(Path.cwd())))


def _profiles(settings: "Settings") -> Iterable[str]:
    from remit.app.workbench import definition_files  # noqa: PLC0415 - only at the tab key
    from remit.config.definitions import parse_definitions  # noqa: PLC0415

    found = parse_definitions(definition_files(settings))
    return [one.name for one in found.compositions]


def _capabilities(settings: "Settings") -> Iterable[str]:
    from remit.app.workbench import definition_files, read_standing  # noqa: PLC0415
    from remit.config.definitions import parse_definitions  # noqa: PLC0415

    found = parse_definitions(definition_files(settings))
    made = [one.capability.id for one in read_standing(settings).made]
    return [*(one.id for one in found.capabilities), *made]


def _agents(settings: "Settings") -> Iterable[str]:
    from remit.app.workbench import read_standing  # noqa: PLC0415 - only at the tab key

    return [one.id for one in read_standing(settings).agents]


def _events(settings: "Settings") -> Iterable[str]:
    from remit.app.workbench import load_universe  # noqa: PLC0415 - only at the tab key

    return load_universe(settings, None)[0].names


def _reviews(settings: "Settings") -> Iterable[str]:
    import remit_client.sync  # noqa: PLC0415 - zmq

    with remit_client.sync.connect(home=str(settings.home)) as remit:
        answer = remit.call("review:list", {"limit": 200}, timeout=_PATIENCE)
    return [item["id"] for item in answer["items"]]


profiles = _completing(_profiles)
agents = _completing(_agents)
subjects = _completing(_profiles, _agents)
events = _completing(_events)
capabilities = _completing(_capabilities)
reviews = _completing(_reviews)


def offer_and_exit(command: click.Command, variable: str) -> None:
    """Print what the shell asks for, and nothing else, whatever happens.

    Args:
        command: the root of all commands.
        variable: the environment variable that says which shell asks for what.

    Raises:
        SystemExit: always.
    """
    from click.shell_completion import add_completion_class, shell_complete  # noqa: PLC0415

    from remit.cli.completion_bash import RemitBash  # noqa: PLC0415 - only at the tab key

    add_completion_class(RemitBash)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - until the end
    try:
        shell_complete(command, {}, "remit", variable, os.environ[variable])
    except (Exception, SystemExit):
        sys.exit(0)
    sys.exit(0)
