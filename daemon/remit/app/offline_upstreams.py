"""The events of upstream tools for commands without a daemon: what is trusted, by what is kept.

No server is started. A file of servers that cannot be read has no events here; `remit check` says
what is wrong with it.
"""

from functools import partial
from typing import TYPE_CHECKING

from remit.config.settings.home import Home
from remit.config.settings.table import Settings
from remit.kernel.dispatch.handler import Handler
from remit.model.place import Problem

if TYPE_CHECKING:
    from remit.features.upstreams.file import UpstreamFile
    from remit.features.upstreams.pins import Pins


def upstream_handlers(settings: Settings) -> dict[str, Handler]:
    """A handler for each trusted tool of each server that is written down, by event."""
    file = _file(settings)
    if file.errors or not file.upstreams:
        return {}
    from remit.features.upstreams.router import (  # noqa: PLC0415 - as below
        UpstreamRouter,
        handlers_of,
        upstream_handler,
    )

    known, serve = _pins(settings, file).known, partial(upstream_handler, UpstreamRouter())
    handlers: dict[str, Handler] = {}
    for one in file.upstreams:
        if one.name in known:
            handlers |= handlers_of(one, known[one.name], serve, {})
    return handlers


def upstream_problems(settings: Settings) -> tuple[Problem, ...]:
    """What is wrong with the file of servers, and with what is kept about them."""
    file = _file(settings)
    return (*file.problems, *(_pins(settings, file).problems if file.upstreams else ()))


def _file(settings: Settings) -> "UpstreamFile":
    from remit.features.upstreams.file import inspect_upstreams, upstreams_path  # noqa: PLC0415

    return inspect_upstreams(upstreams_path(settings))


def _pins(settings: Settings, file: "UpstreamFile") -> "Pins":
    from remit.features.upstreams.pins import read_pins  # noqa: PLC0415

    return read_pins(Home(settings.home).upstreams, [one.name for one in file.upstreams])
