"""What the signature and docstring of a handler's function say about its requests."""

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, get_args

import msgspec
import msgspec.inspect as inspection

from remit.errors import HandlerError
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.visibility import session_of
from remit.kernel.store.protocol import Store
from remit.model.event import Service
from remit.model.grant import Grant, SessionKey
from remit.model.principal import Principal
from remit.model.requests import published
from remit.policy.catalogue import Catalogue

_ARGUMENT = re.compile(r"^\s{4,}(\*{0,2}\w+)(?: \([^)]*\))?:\s+(.*)\Z")
_SECTION = re.compile(r"^(Args|Returns|Raises|Yields|Examples?):\s*\Z")

_CLOSED = (
    inspection.StrType,
    inspection.BoolType,
    inspection.NoneType,
    inspection.LiteralType,
    inspection.EnumType,
    inspection.BytesType,
)


INJECTED: Mapping[type, Callable[[Context], Any]] = {
    Context: lambda ctx: ctx,
    Principal: lambda ctx: ctx.principal,
    Grant: lambda ctx: ctx.grant,
    Catalogue: lambda ctx: ctx.catalogue,
    Store: lambda ctx: ctx.kernel.store,
    SessionKey: session_of,
}
"""By type. A `Service` of a feature is injected as well; any other parameter is a field."""


def injection(kind: Any) -> Callable[[Context], Any] | None:
    """How a parameter of that type is filled from the context of a call; None: by the request.

    A handler that names `Service | None` goes without it where its feature is not served.
    """
    if isinstance(kind, UnionType):
        kinds = [one for one in get_args(kind) if one is not NoneType]
        if len(kinds) != 1 or not _is_service(kinds[0]):
            return None
        return lambda ctx: ctx.kernel.find(kinds[0])
    if _is_service(kind):
        return lambda ctx: ctx.kernel.service(kind)
    return INJECTED.get(kind) if isinstance(kind, type) else None


def _is_service(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Service)


class Shape(msgspec.Struct, frozen=True):
    """How a request becomes a call of the function."""

    request_type: type[msgspec.Struct]
    data_parameter: str | None
    """The parameter that takes the whole request; None when each field has its own."""
    injected: dict[str, Callable[[Any], Any]]
    """Parameters that are filled from the context of the call, by their type."""
    answer_type: Any


def read_shape(function: Callable[..., Any], place: str) -> Shape:
    """Read a signature.

    Raises:
        HandlerError: it cannot be served.
    """
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise HandlerError(f"{place}: its annotations cannot be read: {error}") from error
    injected: dict[str, Callable[[Any], Any]] = {}
    fields: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise HandlerError(f"{place}: the parameter {parameter} cannot be filled by a request")
        kind = hints.get(parameter.name)
        inject = injection(kind)
        if inject is None:
            fields.append(parameter)
        else:
            injected[parameter.name] = inject
    answer = hints.get("return", Any)
    if len(fields) == 1 and _is_struct(hints.get(fields[0].name)):
        whole = hints[fields[0].name]
        return Shape(_strict(whole), fields[0].name, injected, answer)
    return Shape(_struct_of(function, fields, hints, place), None, injected, answer)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _strict(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """The same type, refusing unknown fields: a misspelt option must not be silent."""
    if kind.__struct_config__.forbid_unknown_fields:
        return kind
    return msgspec.defstruct(kind.__name__, [], bases=(kind,), forbid_unknown_fields=True)


def _struct_of(
    function: Callable[..., Any],
    parameters: list[inspect.Parameter],
    hints: dict[str, Any],
    place: str,
) -> type[msgspec.Struct]:
    fields: list[Any] = []
    for parameter in parameters:
        if parameter.name not in hints:
            raise HandlerError(
                f"{place}: the parameter {parameter.name!r} has no type",
                hint="annotate it, as in 'key: str'",
            )
        kind = hints[parameter.name]
        if parameter.default is parameter.empty:
            fields.append((parameter.name, kind))
        else:
            fields.append((parameter.name, kind, _default(parameter.default)))
    return msgspec.defstruct(
        f"{function.__name__}_request", fields, kw_only=True, forbid_unknown_fields=True
    )


def _default(value: Any) -> Any:
    """Mutable defaults are copied for every request."""
    if isinstance(value, list | dict | set) and value:
        return msgspec.field(default_factory=lambda: type(value)(value))
    return value


def is_open(kind: Any) -> bool:
    """Tell whether a value of this type may hold parts that one format of the wire cannot carry.

    Text, booleans and bounded numbers are the same in both; a type of its own is read by itself.
    """
    return _is_open(inspection.type_info(kind), frozenset())


def _is_open(kind: inspection.Type, around: frozenset[type]) -> bool:
    match kind:
        case inspection.IntType():
            return not _is_bounded(kind)
        case inspection.ListType() | inspection.VarTupleType() | inspection.SetType():
            return _is_open(kind.item_type, around)
        case inspection.DictType():
            return _is_open(kind.key_type, around) or _is_open(kind.value_type, around)
        case inspection.UnionType():
            return any(_is_open(one, around) for one in kind.types)
        case inspection.StructType():
            inner = around | {kind.cls}
            return kind.cls in around or any(_is_open(one.type, inner) for one in kind.fields)
        case _:
            return not isinstance(kind, _CLOSED)


def _is_bounded(kind: inspection.IntType) -> bool:
    lowest, highest = (kind.ge, kind.gt), (kind.le, kind.lt)
    return any(one is not None for one in lowest) and any(one is not None for one in highest)


def flat_schema(kind: Any) -> dict[str, Any]:
    """A JSON Schema whose top level is the type itself and not a reference to it."""
    schema = dict(published(msgspec.json.schema(kind)))
    reference = schema.get("$ref")
    if reference is None:
        return schema
    definitions = dict(schema["$defs"])
    top = definitions.pop(reference.rsplit("/", 1)[1])
    return {**top, "$defs": definitions} if definitions else dict(top)


def argument_docs(docstring: str) -> dict[str, str]:
    """The `Args:` section of a docstring, by name."""
    found: dict[str, str] = {}
    lines = inspect.cleandoc(docstring).splitlines()
    inside, current = False, ""
    for line in lines:
        if _SECTION.match(line):
            inside = line.startswith("Args")
            continue
        match = _ARGUMENT.match(line) if inside else None
        if match:
            current = match.group(1)
            found[current] = match.group(2).strip()
        elif inside and current and line.strip():
            found[current] += " " + line.strip()
    return found


def free_text(docstring: str) -> str:
    """A docstring without its sections about arguments and results."""
    kept = []
    for line in inspect.cleandoc(docstring).splitlines():
        if _SECTION.match(line):
            break
        kept.append(line)
    return "\n".join(kept).strip()
