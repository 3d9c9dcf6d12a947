"""Upstream MCP servers as the operator wrote them down, and the tools that they show."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from remit.errors import Place
from remit.model.limits import Effect

NAMESPACE = "mcp"
Trust = Literal["on_first_use", "review"]
Start = Literal["lazy", "eager"]


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of upstreams.yaml: how a server is reached, and what of it is let in."""

    name: str
    command: str = ""
    """A program that speaks over its standard streams; empty when `url` says where it is."""
    args: tuple[str, ...] = ()
    cwd: str = ""
    env: Mapping[str, str] = {}
    secret_env: Mapping[str, str] = {}
    """Variables of the server whose value is a secret, by the name of that secret."""
    url: str = ""
    headers: Mapping[str, str] = {}
    secret_headers: Mapping[str, str] = {}
    """Headers whose value is a secret, by the name of that secret."""
    include: tuple[str, ...] = ("*",)
    """Tools that are let in; a `*` at the end stands for any ending."""
    exclude: tuple[str, ...] = ()
    effects: Mapping[str, Effect] = {}
    """What tools do, by name or pattern, whatever they say themselves; an exact name counts most,
    then the longest pattern."""
    trust: Trust = "review"
    start: Start = "lazy"
    timeout: float = 60.0
    """Seconds for one call."""
    start_timeout: float = 30.0
    concurrency: int = 8
    place: Place | None = None

    @property
    def origin(self) -> str:
        """What is pinned with each tool: the same tool from elsewhere is another tool."""
        return self.url or "\x00".join((self.command, *self.args))

    @property
    def source(self) -> str:
        """Its name among the sources of events."""
        return f"{NAMESPACE}:{self.name}"


class UpstreamTool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a server says about one of its tools; nobody here has checked it."""

    name: str
    title: str = ""
    description: str = ""
    input_schema: dict[str, Any] = {}
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] = {}

    def fingerprint(self, origin: str) -> str:
        """SHA-256 over everything that a model or a host would act on, and where it comes from."""
        import hashlib  # noqa: PLC0415 - 3 ms that commands without upstream tools need not pay

        body = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "input_schema": self.input_schema,
            "output_schema": self.output_schema,
            "annotations": self.annotations,
            "origin": origin,
        }
        return hashlib.sha256(msgspec.json.encode(body, order="deterministic")).hexdigest()


def server_of(event: str) -> str:
    """The upstream server that an event is served by; empty when it is none of theirs."""
    parts = event.split(":", 2)
    return parts[1] if parts[0] == NAMESPACE and len(parts) == 3 else ""  # noqa: PLR2004
