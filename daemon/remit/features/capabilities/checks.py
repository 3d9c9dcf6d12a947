"""What may stand in a capability that is made at run time: nothing that its author does not hold.

INVARIANT: a refusal is the same for a name that does not exist and one that is hidden.
"""

import re
from collections.abc import Iterable

import msgspec

from remit.errors import ExceedsParentError, InvalidDataError, InvalidPatternError, TooLargeError
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.visibility import is_in_reach, visible_capabilities
from remit.model.capability import (
    MAX_BYTES,
    MAX_MOUNT_BYTES,
    MAX_NAME_BYTES,
    MAX_PROMPT_BYTES,
    RuntimeCapability,
    RuntimeDefinition,
)
from remit.model.names import EventPattern, did_you_mean
from remit.model.paths import parse_file_path
from remit.model.principal import OPERATOR_ID
from remit.model.schema import schema_mistakes, shown
from remit.policy.capabilities import mount_conflicts, required_by

_MODEL_TOOL = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}")


def check_definition(ctx: Context, runtime: RuntimeCapability) -> None:
    """Refuse a definition that is too large, wrong, or more than its author and the caller hold.

    Args:
        ctx: the request.
        made: the capability as it would be; its latest version is looked at.

    Raises:
        ExceedsParentError: an event, a tool or a requirement is not held.
        InvalidDataError: something cannot be read.
        TooLargeError: a limit is passed.
    """
    said = runtime.latest.definition
    _check_sizes(said)
    _check_schema(said)
    ceiling = _ceiling(ctx, runtime)
    _check_patterns(ctx, said, ceiling)
    _check_files(runtime)
    _check_tools(said, ceiling)
    _check_requires(ctx, runtime, ceiling)


def may_change(ctx: Context, runtime: RuntimeCapability) -> bool:
    """Tell whether a caller is the author of a capability, or somebody above the author."""
    if ctx.principal.is_operator:
        return True
    return author_lives(ctx, runtime) and is_in_reach(ctx, runtime.author)


def author_lives(ctx: Context, runtime: RuntimeCapability) -> bool:
    """Tell whether the author of a capability is still there, and not another of its name."""
    found = ctx.kernel.authority.fleet.get(runtime.author)
    if found is None:
        return runtime.author == OPERATOR_ID
    return found.public_key == runtime.author_key


class _Ceiling(msgspec.Struct, frozen=True):
    """What may be given away at the most."""

    bits: int
    claude_tools: frozenset[str] | None
    """None: all of them. The operator holds none, and may name any."""


def _ceiling(ctx: Context, runtime: RuntimeCapability) -> _Ceiling:
    """What the author holds by itself and the caller in this request."""
    fleet, universe = ctx.kernel.authority.fleet, ctx.catalogue.universe
    author = fleet.author_ceiling(runtime.author, runtime.author_key, ctx.catalogue)
    bits, tools = ctx.grant.bits & universe.everything, None
    if not ctx.principal.is_operator:
        tools = ctx.grant.claude_tools
    if author is not None:
        bits &= author.bits
        tools = author.claude_tools if tools is None else tools & author.claude_tools
    return _Ceiling(bits, tools)


def _check_sizes(said: RuntimeDefinition) -> None:
    sizes = {
        "name": (len(said.name.encode("utf-8", "surrogatepass")), MAX_NAME_BYTES),
        "system_prompt": (
            len(said.system_prompt.encode("utf-8", "surrogatepass")),
            MAX_PROMPT_BYTES,
        ),
        "mounts": (len(msgspec.json.encode(said)), MAX_BYTES),
    }
    for field, (size, limit) in sizes.items():
        if size > limit:
            what = "the definition with its files" if field == "mounts" else field
            raise TooLargeError(
                f"{what} has {size:,} bytes; {limit:,} are the limit",
                hint="shorten it",
                details={"path": f"$.{field}", "limit": limit, "size": size},
            )


def _check_schema(said: RuntimeDefinition) -> None:
    mistakes = schema_mistakes(said.config_schema, refer=False) if said.config_schema else ()
    if mistakes:
        first = mistakes[0]
        raise InvalidDataError(
            f"this is no JSON Schema: {first.message}",
            hint="see https://json-schema.org/draft/2020-12",
            details={"path": shown(first.path, "$.config_schema")},
        )


def _check_files(runtime: RuntimeCapability) -> None:
    for at, file in enumerate(runtime.latest.definition.mounts):
        path = f"$.mounts[{at}]"
        try:
            size, parsed = len(file.mount.content), parse_file_path(file.path)
        except (ValueError, InvalidDataError) as error:
            message = getattr(error, "message", f"the content is not base64: {error}")
            raise InvalidDataError(message, details={"path": path}) from error
        if not parsed.startswith(runtime.folder) or parsed != file.path:
            message = f"the files of {runtime.id!r} lie under {runtime.folder!r}"
            raise InvalidDataError(message, details={"path": f"{path}.path"})
        if size > MAX_MOUNT_BYTES:
            message = f"the file has {size:,} bytes; {MAX_MOUNT_BYTES:,} are the limit"
            raise TooLargeError(message, details={"path": path, "limit": MAX_MOUNT_BYTES})
    if mount_conflicts([runtime.capability]):
        message = "two files are in each other's way"
        raise InvalidDataError(message, details={"path": "$.mounts"})


def _check_patterns(ctx: Context, said: RuntimeDefinition, ceiling: _Ceiling) -> None:
    universe = ctx.catalogue.universe
    for at, text in enumerate(said.event_patterns):
        path = f"$.event_patterns[{at}]"
        try:
            pattern = EventPattern.parse(text)
        except InvalidPatternError as error:
            raise InvalidDataError(
                error.message, hint=error.hint, details={"path": path}
            ) from error
        if pattern.is_everything:
            message = "a capability cannot hold every event"
            raise InvalidDataError(message, hint="name the events", details={"path": path})
        if not universe.granted_by(pattern) & ceiling.bits:
            known = universe.names_in(ceiling.bits)
            raise _beyond(f"you hold nothing that {text!r} names", text, path, known)


def _check_tools(said: RuntimeDefinition, ceiling: _Ceiling) -> None:
    for at, tool in enumerate(said.claude_tools):
        path = f"$.claude_tools[{at}]"
        if not _MODEL_TOOL.fullmatch(tool):
            raise InvalidDataError(f"{tool!r} is not a model tool", details={"path": path})
        if ceiling.claude_tools is not None and tool not in ceiling.claude_tools:
            message = f"you do not hold the model tool {tool!r}"
            raise _beyond(message, tool, path, ceiling.claude_tools)


def _check_requires(ctx: Context, runtime: RuntimeCapability, ceiling: _Ceiling) -> None:
    catalogue = ctx.catalogue
    seen = [
        name for name in visible_capabilities(ctx) if name not in catalogue.runtime_capabilities
    ]
    for at, name in enumerate(runtime.latest.definition.requires):
        if catalogue.names.get(name) not in seen:
            raise InvalidDataError(
                f"there is no capability {name!r} in the files that you may require",
                hint=did_you_mean(name, seen),
                details={"path": f"$.requires[{at}]"},
            )
    bits, tools = 0, set[str]()
    for name in required_by(catalogue, runtime.capability):
        bits |= catalogue.own_events[name]
        tools.update(ref.name for ref in catalogue.capabilities[name].claude_tools)
    known = tools if ceiling.claude_tools is None else ceiling.claude_tools
    if bits & ~ceiling.bits or tools - known:
        raise ExceedsParentError(
            "what it requires gives more than you hold",
            hint="name the events that you hold under event_patterns",
            details={"path": "$.requires", "excess": list(runtime.latest.definition.requires)},
        )


def _beyond(message: str, name: str, path: str, known: Iterable[str]) -> ExceedsParentError:
    hint = did_you_mean(name, known)
    return ExceedsParentError(message, hint=hint, details={"path": path, "excess": [name]})
