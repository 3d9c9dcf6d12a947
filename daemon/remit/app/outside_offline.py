"""The events of outside tools for commands without a daemon: what is trusted, by what is kept.

No server is started. A file of servers that cannot be read has no events here; `remit check` says
what is wrong with it.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

from remit.config.home import Home
from remit.config.settings_table import Settings
from remit.errors import UnavailableError
from remit.model.place import Problem
from remit.runtime.handler import Handler

if TYPE_CHECKING:
    from collections.abc import Callable

    from remit.config.upstream_file import UpstreamFile
    from remit.config.upstream_pins import Pins


class _NoBoard:
    """There is nothing behind the events of a command."""

    async def call(
        self, handler: Any, _arguments: dict[str, Any], _report: "Callable[..., None] | None", /
    ) -> dict[str, Any]:
        message = f"{handler.spec.name} is answered by a daemon only"
        raise UnavailableError(message, hint="start one: remit serve")


def outside_handlers(settings: Settings) -> dict[str, Handler]:
    """A handler for each trusted tool of each server that is written down, by event."""
    file = _file(settings)
    if file.errors or not file.upstreams:
        return {}
    from remit.runtime.outside_handler import serve_tool  # noqa: PLC0415 - as below
    from remit.runtime.outside_table import handlers_of  # noqa: PLC0415

    known, serve = _pins(settings, file).known, partial(serve_tool, _NoBoard())
    handlers: dict[str, Handler] = {}
    for one in file.upstreams:
        if one.name in known:
            handlers |= handlers_of(one, known[one.name], serve, {})
    return handlers


def outside_problems(settings: Settings) -> tuple[Problem, ...]:
    """What is wrong with the file of servers, and with what is kept about them."""
    file = _file(settings)
    return (*file.problems, *(_pins(settings, file).problems if file.upstreams else ()))


def _file(settings: Settings) -> "UpstreamFile":
    from remit.config.upstream_file import (  # noqa: PLC0415 - only who has servers pays for them
        inspect_upstreams,
        upstreams_path,
    )

    return inspect_upstreams(upstreams_path(settings))


def _pins(settings: Settings, file: "UpstreamFile") -> "Pins":
    from remit.config.upstream_pins import read_pins  # noqa: PLC0415

    return read_pins(Home(settings.home).upstreams, [one.name for one in file.upstreams])
