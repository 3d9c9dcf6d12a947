"""The handler of an event that an upstream tool answers.

Its request is any object that fits the schema that was pinned. What a model is shown of the tool is
cleaned; what the arguments are checked with is the schema as it came.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from remit.errors import InvalidDataError, ToolFailedError
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.handler import Handler
from remit.model.event import EventSpec
from remit.model.upstream import UpstreamTool
from remit.policy.tool_names import server_of
from remit.text.clean import cleaned_text

if TYPE_CHECKING:
    from remit.features.upstreams.client.schema import Checker

_TOLD = frozenset({"description", "title", "$comment", "markdownDescription"})
"""Keys of a schema whose text is for readers; everything else counts when data are checked."""
_DEEPEST = 64
_OBJECT = {"type": "object", "properties": {}}


class Board(Protocol):
    """What connects calls to upstream servers."""

    async def call(
        self, handler: Any, arguments: dict[str, Any], report: Callable[..., None] | None, /
    ) -> dict[str, Any]:
        """The answer of a tool, as MCP content."""


async def _outside(ctx: Context) -> dict[str, Any]:
    """A tool of an upstream server."""
    raise ToolFailedError(f"{ctx.request_id} was not sent")  # pragma: no cover - see `call`


class UpstreamHandler(Handler):
    """One tool of an upstream server, exactly as it was trusted."""

    def __init__(
        self, spec: EventSpec, server: str, tool: UpstreamTool, fingerprint: str, board: Board
    ) -> None:
        super().__init__(_cleaned(spec, tool), _outside, inline=False)
        # It is only the server's word that a tool just reads: whatever goes out is written down.
        self.is_change = True
        self.server = server
        self.tool = tool
        self.fingerprint = fingerprint
        self._board = board

    def is_same(self, spec: EventSpec, fingerprint: str) -> bool:
        """Tell whether this serves such an event already."""
        placed = msgspec.structs.replace(spec, place=self.spec.place)  # lines move in a file
        return self.fingerprint == fingerprint and self.spec == _cleaned(placed, self.tool)

    @property
    def is_open(self) -> bool:
        """Any object may come, as long as it fits the schema."""
        return True

    @cached_property
    def from_msgpack(self) -> Callable[[bytes], Any]:
        """Decode request data of the wire's first format."""
        decode = msgspec.msgpack.Decoder(dict[str, Any]).decode
        return lambda raw: self.checked(decode(raw))

    @cached_property
    def from_json(self) -> Callable[[bytes], Any]:
        """Decode request data of the wire's second format."""
        decode = msgspec.json.Decoder(dict[str, Any]).decode
        return lambda raw: self.checked(decode(raw))

    def from_object(self, data: Any) -> Any:
        """Read request data that are plain Python values already."""
        return self.checked(msgspec.convert({} if data is None else data, dict[str, Any]))

    def checked(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments, if they fit the schema that was pinned.

        Raises:
            InvalidDataError: they do not.
        """
        mistake = self._input.mistake(arguments)
        if mistake:
            path, colon, message = mistake.partition(": ")
            if not colon or not path.startswith("$"):
                path, message = "$", mistake
            hint = f"system:help with event={self.spec.name} shows its schema"
            raise InvalidDataError(message, hint=hint, details={"path": path})
        return arguments

    @cached_property
    def _input(self) -> "Checker":
        return _checker(self.tool.input_schema)

    @cached_property
    def call(self) -> Callable[[Any, Context], Any]:
        """Call the tool with arguments that were checked."""
        # A server is asked to report progress only where somebody listens.
        return lambda arguments, ctx: self._board.call(
            self, arguments, ctx.report if ctx.progress is not None else None
        )

    @cached_property
    def description(self) -> str:
        """What the tool says about itself, without what cannot be seen."""
        return cleaned_text(self.tool.description) or self.spec.summary or self.tool.name

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The pinned schema, with its texts cleaned."""
        return {**_OBJECT, **_shown(self.tool.input_schema, 0)}

    @property
    def output_schema(self) -> dict[str, Any]:
        """What the tool promises to give to programs."""
        return dict(self.answer_schema["properties"].get("structured_content", {}))

    @cached_property
    def answer_schema(self) -> dict[str, Any]:
        """The JSON Schema of answers: blocks of content, and the data that the tool promises."""
        blocks = {"type": "array", "items": {"type": "object"}}
        properties: dict[str, Any] = {"content": blocks}
        if self.tool.output_schema is not None:
            properties["structured_content"] = _shown(self.tool.output_schema, 0)
        return {"type": "object", "properties": properties, "required": ["content"]}


def serve_tool(
    board: Board, present: Any, spec: EventSpec, tool: UpstreamTool, fingerprint: str
) -> UpstreamHandler:
    """The handler of a tool: the one that serves it at present if nothing has changed."""
    if isinstance(present, UpstreamHandler) and present.is_same(spec, fingerprint):
        return present
    return UpstreamHandler(spec, server_of(spec.name), tool, fingerprint, board)


def _cleaned(spec: EventSpec, tool: UpstreamTool) -> EventSpec:
    if not tool.description and not spec.title:
        return spec
    return msgspec.structs.replace(
        spec, summary=cleaned_text(spec.summary), title=cleaned_text(spec.title)
    )


def _checker(schema: Mapping[str, Any]) -> "Checker":
    from remit.features.upstreams.client.schema import Checker, unusable  # noqa: PLC0415 - jsonschema-rs: see there

    why = unusable(schema)
    if why:
        message = f"nothing can be checked with its schema: {why}"
        raise InvalidDataError(message, hint="exclude this tool", details={"path": "$"})
    return Checker(schema)


def _shown(value: Any, depth: int) -> Any:
    """A schema whose texts for readers are cleaned; what lies too deep is left out."""
    if isinstance(value, Mapping):
        if depth > _DEEPEST:
            return {}
        return {key: _shown_at(key, inside, depth + 1) for key, inside in value.items()}
    if isinstance(value, list):
        return [_shown(inside, depth + 1) for inside in value] if depth <= _DEEPEST else []
    return value


def _shown_at(key: str, value: Any, depth: int) -> Any:
    if key in _TOLD and isinstance(value, str):
        return cleaned_text(value)
    if key == "properties" and isinstance(value, Mapping):  # its keys are names
        return {name: _shown(one, depth) for name, one in value.items()}
    return _shown(value, depth)
