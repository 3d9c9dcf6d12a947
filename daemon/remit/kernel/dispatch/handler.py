"""A decorated function, its event, and what its signature and docstring say about its requests.

The signature is read when it is first needed.
"""

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from functools import cached_property
from types import NoneType, UnionType
from typing import Any, get_args

import msgspec
import msgspec.inspect as inspection

from remit.errors import HandlerError
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.tool_list import ToolParts, tool_parts
from remit.kernel.store.rows import Rows
from remit.model.event import EventSpec, Service
from remit.model.grant import Grant, SessionKey
from remit.model.principal import Principal
from remit.model.schema import published
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


def session_of(ctx: Context) -> SessionKey:
    """The session that a call works in: the one it names, else that of its agent."""
    return ctx.kernel.authority.fleet.session_key(ctx.principal.id, ctx.session)


INJECTED: Mapping[type, Callable[[Context], Any]] = {
    Context: lambda ctx: ctx,
    Principal: lambda ctx: ctx.principal,
    Grant: lambda ctx: ctx.grant,
    Catalogue: lambda ctx: ctx.catalogue,
    SessionKey: session_of,
}
"""By type. A `Service` of a feature and `Rows` are injected as well; any other is a field."""


class Shape(msgspec.Struct, frozen=True):
    """The binding of request fields and services to the parameters of the function."""

    request_type: type[msgspec.Struct]
    data_parameter: str | None
    """The parameter that takes the whole request; None when each field has its own."""
    injected: dict[str, Callable[[Any], Any]]
    """Parameters that are filled from the context of the call, by their type."""
    answer_type: Any


class Handler:
    """One event's function, its flags and its request type."""

    def __init__(
        self,
        spec: EventSpec,
        function: Callable[..., Any],
        *,
        inline: bool,
        meaning: Callable[[Any, Context], Any] | None = None,
    ) -> None:
        self.spec = spec
        self.meaning = meaning
        """What the data of a call stand for now; an approval counts for that as well."""
        self.function = function
        self.is_async = _is_async(function)
        self.inline = inline and not self.is_async
        self.is_change = spec.effect != "read" and not spec.fleeting
        """Whether every call is written down before it is made."""

    @property
    def module(self) -> str:
        """The module it stands in."""
        return self.function.__module__

    @cached_property
    def shape(self) -> Shape:
        """What the signature says.

        Raises:
            HandlerError: the signature cannot be served.
        """
        return read_shape(self.function, str(self.spec.place))

    @cached_property
    def is_open(self) -> bool:
        """Tell whether a request may hold what only one format of the wire can carry."""
        return is_open(self.shape.request_type)

    @cached_property
    def from_msgpack(self) -> Callable[[bytes], Any]:
        """Decode request data of the wire's first format."""
        return msgspec.msgpack.Decoder(self.shape.request_type).decode

    @cached_property
    def from_json(self) -> Callable[[bytes], Any]:
        """Decode request data of the wire's second format."""
        return msgspec.json.Decoder(self.shape.request_type).decode

    def from_object(self, data: Any) -> Any:
        """Read request data that are plain Python values already."""
        return msgspec.convert({} if data is None else data, self.shape.request_type)

    @cached_property
    def call(self) -> Callable[[Any, Context], Any]:
        """Call the function with a decoded request; an async one answers a coroutine."""
        function, shape = self.function, self.shape
        injected, whole = tuple(shape.injected.items()), shape.data_parameter
        fields = shape.request_type.__struct_fields__

        def spread(request: Any, ctx: Context) -> Any:
            arguments = {name: getattr(request, name) for name in fields}
            for name, get in injected:
                arguments[name] = get(ctx)
            return function(**arguments)

        if whole is None:
            return spread
        return lambda request, ctx: function(
            **{whole: request}, **{name: get(ctx) for name, get in injected}
        )

    @cached_property
    def description(self) -> str:
        """The docstring without its sections about arguments."""
        return free_text(self.function.__doc__ or "") or self.spec.summary

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of requests, with the descriptions of the docstring."""
        schema = flat_schema(self.shape.request_type)
        schema.pop("title", None)
        schema.pop("description", None)
        documented = argument_docs(self.function.__doc__ or "")
        for name, text in documented.items():
            if name in schema.get("properties", {}):
                schema["properties"][name].setdefault("description", text)
        return schema

    @property
    def output_schema(self) -> dict[str, Any]:
        """The JSON Schema of what a tool of this event gives to programs; empty: unknown."""
        return {} if self.spec.content else self.answer_schema

    @cached_property
    def answer_schema(self) -> dict[str, Any]:
        """The JSON Schema of answers; empty when the function does not say."""
        kind = self.shape.answer_type
        return {} if kind in (Any, None, type(None)) else flat_schema(kind)

    @cached_property
    def tool_parts(self) -> ToolParts:
        """What a tool list says about it."""
        return tool_parts(self)


def _is_async(function: Callable[..., Any]) -> bool:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    return code is not None and bool(code.co_flags & inspect.CO_COROUTINE)


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
    if isinstance(kind, type) and issubclass(kind, Rows):
        return lambda ctx: kind(ctx.kernel.database)
    return INJECTED.get(kind) if isinstance(kind, type) else None


def _is_service(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Service)


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
