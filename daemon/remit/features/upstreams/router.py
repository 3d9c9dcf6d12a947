"""Calls of upstream tools: the handler of each, and the router that sends them to their servers.

The request of such an event is any object that fits the schema that was pinned. What a model is
shown of the tool is cleaned; what the arguments are checked with is the schema as it came.
"""

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from remit.errors import InvalidDataError, ToolFailedError, UnavailableError
from remit.features.upstreams.client.schema import Checker, unusable
from remit.features.upstreams.pins import KnownServer, served_tools
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.handler import Handler
from remit.model.event import EventSpec
from remit.model.upstream import Upstream, UpstreamTool, server_of
from remit.policy.upstream_tools import upstream_spec
from remit.text.sanitise import cleaned_text

if TYPE_CHECKING:
    from remit.features.upstreams.client.state import CallOutcome, Health, Listing, Progress

_TOLD = frozenset({"description", "title", "$comment", "markdownDescription"})
"""Keys of a schema whose text is for readers; everything else counts when data are checked."""
_DEEPEST = 64
_OBJECT = {"type": "object", "properties": {}}
QUARANTINED = "quarantined"
_MESSAGE = 300
_UNKNOWN_TOOL = re.compile(r"unknown tool|no such tool|tool\b.{0,80}\bnot found", re.IGNORECASE)
Serve = Callable[[Any, EventSpec, UpstreamTool, str], Any]
"""Makes the handler of a tool with its fingerprint, or takes the one that serves it at present."""


async def _not_sent(ctx: Context) -> dict[str, Any]:
    """A tool of an upstream server."""
    raise ToolFailedError(f"{ctx.request_id} was not sent")  # pragma: no cover - see `call`


class UpstreamHandler(Handler):
    """One tool of an upstream server, exactly as it was trusted."""

    def __init__(
        self,
        spec: EventSpec,
        server: str,
        tool: UpstreamTool,
        fingerprint: str,
        router: "UpstreamRouter",
    ) -> None:
        super().__init__(_cleaned(spec, tool), _not_sent, inline=False)
        # It is only the server's word that a tool just reads: whatever goes out is written down.
        self.is_change = True
        self.server = server
        self.tool = tool
        self.fingerprint = fingerprint
        self._router = router

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
    def _input(self) -> Checker:
        return _checker(self.tool.input_schema)

    @cached_property
    def call(self) -> Callable[[Any, Context], Any]:
        """Call the tool with arguments that were checked."""
        # A server is asked to report progress only where somebody listens.
        return lambda arguments, ctx: self._router.call(
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


def upstream_handler(
    router: "UpstreamRouter", present: Any, spec: EventSpec, tool: UpstreamTool, fingerprint: str
) -> UpstreamHandler:
    """The handler of a tool: the one that serves it at present if nothing has changed."""
    if isinstance(present, UpstreamHandler) and present.is_same(spec, fingerprint):
        return present
    return UpstreamHandler(spec, server_of(spec.name), tool, fingerprint, router)


def handlers_of(
    upstream: Upstream, known: KnownServer, serve: Serve, present: Mapping[Any, Any]
) -> dict[str, Any]:
    """The handlers of all tools of a server that are trusted, by event."""
    made = {}
    for event, tool in served_tools(upstream, known).items():
        pin = known.tools[tool.name]
        spec = upstream_spec(upstream, tool, pin.segment, vouched=pin.is_vouched)
        made[str(event)] = serve(present.get(event), spec, tool, pin.fingerprint)
    return made


def _cleaned(spec: EventSpec, tool: UpstreamTool) -> EventSpec:
    if not tool.description and not spec.title:
        return spec
    return msgspec.structs.replace(
        spec, summary=cleaned_text(spec.summary), title=cleaned_text(spec.title)
    )


def _checker(schema: Mapping[str, Any]) -> Checker:
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


class ServerClient(Protocol):
    """A supervised upstream server, as calls need it; `client.client.UpstreamClient` is one."""

    @property
    def health(self) -> "Health":
        """How it is now."""

    async def run(self) -> None:
        """Keep it until cancelled."""

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        progress: "Progress | None" = None,
        check: Callable[[], None] | None = None,
    ) -> "CallOutcome":
        """Call a tool; `check` is asked right before it is sent, and may refuse."""

    async def refresh(self) -> "Listing":
        """Ask for the list of tools anew."""


class UpstreamRouter:
    """The client of each server, and the fingerprints of the tools that may be called.

    INVARIANT: a tool is called only with the fingerprint that is trusted when the call is sent. A
    list that shows another one takes the trust away before anybody is asked or told.
    """

    def __init__(self) -> None:
        self._clients: dict[str, ServerClient] = {}
        self._trusted: dict[str, dict[str, str]] = {}
        self._listed: dict[str, Mapping[str, str]] = {}
        """What each server showed last; nothing of one that was not asked yet."""
        self.on_doubt: Callable[[str], None] | None = None
        """Told the server when an answer makes its list of tools doubtful."""

    def connect(self, server: str, client: ServerClient) -> None:
        """Send the calls of a server to this client from now on."""
        self._clients[server] = client

    def disconnect(self, server: str) -> None:
        """Send no more calls to a server, and trust nothing of it."""
        self._clients.pop(server, None)
        self._trusted.pop(server, None)
        self._listed.pop(server, None)

    def trust(self, server: str, prints: Mapping[str, str]) -> None:
        """Let exactly these tools be called, each with its fingerprint."""
        self._trusted[server] = dict(prints)

    def distrust(self, server: str, tool: str) -> None:
        """Let a tool be called no more."""
        self._trusted.get(server, {}).pop(tool, None)

    def listed(self, server: str, prints: Mapping[str, str]) -> None:
        """Take in what a server lists: what differs from what is trusted is not called any more."""
        self._listed[server] = prints

    def is_trusted(self, handler: UpstreamHandler) -> bool:
        """Tell whether what a handler serves may be called now."""
        server, tool, mark = handler.server, handler.tool.name, handler.fingerprint
        listed = self._listed.get(server)
        is_shown = listed is None or listed.get(tool) == mark
        return is_shown and self._trusted.get(server, {}).get(tool) == mark

    def unavailable(self) -> dict[str, str]:
        """The servers that do not answer now, and why."""
        states = ((name, client.health) for name, client in self._clients.items())
        return {
            name: health.reason or health.last_error or f"it is {health.state}"
            for name, health in states
            # One that is started again after it has failed is not there either.
            if health.state in ("failing", "stopped")
            or (health.state == "starting" and health.last_error)
        }

    async def call(
        self, handler: UpstreamHandler, arguments: dict[str, Any], report: "Progress | None", /
    ) -> dict[str, Any]:
        """The answer of a tool, as MCP content.

        Raises:
            ToolFailedError: the tool says that it failed, or its answer cannot be passed on.
            UnavailableError: the server is not there, or the tool is not trusted any more.
            RemitError: another way in which nothing came of it.
        """

        def check() -> None:
            if not self.is_trusted(handler):
                raise quarantined(handler)

        check()
        client = self._clients.get(handler.server)
        if client is None:
            message = f"the upstream server {handler.server!r} is not connected"
            hint = "an operator looks at it: remit upstream list"
            raise UnavailableError(message, hint=hint, details={"reason": "not connected"})
        try:
            outcome = await client.call(handler.tool.name, arguments, progress=report, check=check)
        except ToolFailedError:
            self._doubt(handler.server)
            raise
        if outcome.is_error:
            self._failed(handler, outcome)
        answer: dict[str, Any] = {"content": outcome.content}
        if outcome.structured_content is not None:
            answer["structured_content"] = outcome.structured_content
        return answer

    def _failed(self, handler: UpstreamHandler, outcome: "CallOutcome") -> None:
        texts = (block.get("text") for block in outcome.content)
        said = " ".join(text for text in texts if isinstance(text, str))[:_MESSAGE]
        if _UNKNOWN_TOOL.search(said):  # many servers say so in an answer
            self._doubt(handler.server)
        details: dict[str, Any] = {"content": outcome.content}
        if outcome.structured_content is not None:
            details["structured_content"] = outcome.structured_content
        message = " ".join(cleaned_text(said).split()) or f"{handler.tool.name} failed"
        hint = "the upstream tool said so; details.content is all that it said"
        raise ToolFailedError(message, hint=hint, details=details)

    def _doubt(self, server: str) -> None:
        if self.on_doubt is not None:
            self.on_doubt(server)


def quarantined(handler: UpstreamHandler) -> UnavailableError:
    """The answer to a call of a tool that is not what was trusted."""
    return UnavailableError(
        f"{handler.spec.name} is in quarantine: it is not what was trusted",
        hint="an operator looks at it: remit review list",
        details={"reason": QUARANTINED},
    )
