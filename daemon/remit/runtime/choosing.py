"""The capabilities that an agent is given, in order and with their configuration."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from remit.errors import InvalidDataError
from remit.model.agent import Chosen
from remit.model.json_schema import config_mistakes, shown
from remit.model.suggest import did_you_mean
from remit.policy.catalogue import Catalogue
from remit.runtime.context import Context
from remit.runtime.view import visible_capabilities

Asked = dict[str, bool] | tuple[str | Chosen, ...]


class Choice(msgspec.Struct, frozen=True):
    """What was asked for, checked; the order is that of the request."""

    capabilities: dict[str, bool]
    configs: dict[str, dict[str, Any]]


def choose(ctx: Context, asked: Asked) -> Choice:
    """Read flags, or a list whose order is the priority.

    Raises:
        InvalidDataError: a capability is unknown or named twice, or a configuration does not fit.
    """
    choice = Choice({}, {})
    seen: dict[str, str] = {}
    for path, name, on, config in _entries(asked):
        canonical = _known(ctx, name, path)
        if canonical in seen:
            message = f"{name!r} and {seen[canonical]!r} are one capability"
            raise InvalidDataError(message, hint="name it once", details={"path": path})
        seen[canonical] = name
        choice.capabilities[name] = on
        if config:
            _check_config(ctx.catalogue, canonical, config, path)
            choice.configs[name] = config
    return choice


def _entries(asked: Asked) -> Iterator[tuple[str, str, bool, dict[str, Any]]]:
    if isinstance(asked, dict):
        for name, on in asked.items():
            yield f"$.capabilities.{name}", name, on, {}
        return
    for at, entry in enumerate(asked):
        path = f"$.capabilities[{at}]"
        if isinstance(entry, str):
            yield path, entry, True, {}
        else:
            yield path, entry.ref, True, entry.config


def _known(ctx: Context, name: str, path: str) -> str:
    """The id of a capability; what others made is unknown to those who may not see it."""
    catalogue = ctx.catalogue
    found = catalogue.names.get(name)
    if found is None or (found in catalogue.made and found not in visible_capabilities(ctx)):
        hint = did_you_mean(name, visible_capabilities(ctx))
        message = f"there is no capability {name!r}"
        raise InvalidDataError(message, hint=hint, details={"path": path})
    return found


def _check_config(catalogue: Catalogue, name: str, config: dict[str, Any], path: str) -> None:
    mistakes = config_mistakes(catalogue.capabilities[name].config_schema, config)
    if mistakes:
        first = mistakes[0]
        raise InvalidDataError(
            f"the configuration of {name!r} does not fit: {first.message}",
            hint=f"capability:get tells its schema: {{id: {name}}}",
            details={"path": shown(first.path, f"{path}.config")},
        )


def status_warnings(catalogue: Catalogue, capabilities: Mapping[str, bool]) -> list[dict[str, str]]:
    """What is switched on and works differently from what somebody may think, in order."""
    found = []
    for name, on in capabilities.items():
        definition = catalogue.capabilities.get(catalogue.names.get(name, ""))
        if not on or definition is None or definition.status == "available":
            continue
        said = "it grants nothing" if not definition.is_grantable else "choose another one"
        message = f"{name!r} is {definition.status}: {said}"
        found.append({"capability": name, "code": definition.status, "message": message})
    return found
