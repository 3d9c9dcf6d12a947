"""A capability: a named unit that may grant events and model tools, and what comes with it."""

from typing import Any, Literal

import msgspec

from remit.model.limits import NO_LIMITS, Limits
from remit.model.names import EventPattern
from remit.model.place import Place

# A file that a capability brings into the session file system of those who hold it.


MAX_MOUNTS = 32
MAX_MOUNT_BYTES = 65_536


class Mount(msgspec.Struct, frozen=True):
    """One file."""

    path: str
    content: bytes
    read_only: bool = True
    """False: a holder may change it in its own session, and only there."""

    def to_json(self) -> dict[str, Any]:
        """What counts when definitions are compared."""
        return msgspec.structs.asdict(self)


Status = Literal["available", "coming_soon", "deprecated", "retired"]
Inject = Literal["always", "relevant", "never"]

STATUSES: tuple[Status, ...] = ("available", "coming_soon", "deprecated", "retired")
INJECT_MODES: tuple[Inject, ...] = ("always", "relevant", "never")


class Ref(msgspec.Struct, frozen=True):
    """A name that refers to something else, with the place where it was written."""

    name: str
    place: Place


class PlacedPattern(msgspec.Struct, frozen=True):
    """An event pattern with the place where it was written."""

    pattern: EventPattern
    place: Place

    def __str__(self) -> str:
        return str(self.pattern)


class Capability(msgspec.Struct, frozen=True, kw_only=True):
    """One definition of capabilities.yaml."""

    id: str
    place: Place
    description: str = ""
    event_patterns: tuple[PlacedPattern, ...] | None = None
    """None: the handlers that name this capability decide. A list, even an empty one, is exact."""
    claude_tools: tuple[Ref, ...] = ()
    requires: tuple[Ref, ...] = ()
    always_included: bool = False
    mcp_tools: bool = True
    resource_limits: Limits = NO_LIMITS
    security_review_required: bool = False
    name: str = ""
    category: str = ""
    icon: str = ""
    tags: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    status: Status = "available"
    version: str = ""
    author: str = ""
    metadata: dict[str, Any] = {}
    """Remarks of whoever wrote it; nothing here looks into them."""
    aliases: tuple[Ref, ...] = ()
    replaces: tuple[Ref, ...] = ()
    system_prompt: str = ""
    inject: Inject = "always"
    skills: tuple[str, ...] = ()
    config_schema: dict[str, Any] | None = None
    mounts: tuple[Mount, ...] = ()

    @property
    def is_grantable(self) -> bool:
        """Tell whether a profile that lists this capability gets anything from it."""
        return self.status in ("available", "deprecated")

    @property
    def display_name(self) -> str:
        """The name for people."""
        return self.name or self.id.replace("_", " ").capitalize()
