"""A decorated function and its event; its signature is read when it is first needed."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.signature import Shape, argument_docs, flat_schema, free_text, read_shape
from remit.kernel.dispatch.signature import is_open as is_open_type
from remit.kernel.dispatch.tool_list import ToolParts, tool_parts
from remit.model.event import EventSpec

_COROUTINE = 0x80
"""The flag of code objects that `async def` makes; `inspect.CO_COROUTINE` without the import."""


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
    def shape(self) -> "Shape":
        """What the signature says.

        Raises:
            HandlerError: the signature cannot be served.
        """
        return read_shape(self.function, str(self.spec.place))

    @cached_property
    def is_open(self) -> bool:
        """Tell whether a request may hold what only one format of the wire can carry."""
        return is_open_type(self.shape.request_type)

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
    return code is not None and bool(code.co_flags & _COROUTINE)
