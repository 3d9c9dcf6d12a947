"""A capability: a named unit that may grant events and model tools, and what comes with it.

Operators define capabilities in files. A runtime capability is one that somebody defined at run
time, out of what it holds itself.
"""

from typing import Annotated, Any, Literal

import msgspec

from remit.errors import Place
from remit.model.limits import NO_LIMITS, Limits
from remit.model.names import EventPattern, PlacedPattern, Ref

Status = Literal["available", "coming_soon", "deprecated", "retired"]
Inject = Literal["always", "relevant", "never"]

STATUSES: tuple[Status, ...] = ("available", "coming_soon", "deprecated", "retired")
INJECT_MODES: tuple[Inject, ...] = ("always", "relevant", "never")
MAX_MOUNTS = 32
MAX_MOUNT_BYTES = 65_536

MAX_NAME_BYTES = 38
MAX_PROMPT_BYTES = 65_536
MAX_FILES = 32
MAX_SKILLS = 16
MAX_BYTES = 262_144
"""Of one definition, with all its files."""
MAX_VERSIONS = 10
"""That are kept, the one in force included."""

Description = Annotated[str, msgspec.Meta(max_length=2_000)]
Label = Annotated[str, msgspec.Meta(max_length=200)]
Labels = Annotated[tuple[Label, ...], msgspec.Meta(max_length=32)]
Names = Annotated[tuple[Label, ...], msgspec.Meta(max_length=200)]
Prompt = Annotated[str, msgspec.Meta(max_length=4 * MAX_PROMPT_BYTES)]
Skills = Annotated[tuple[Label, ...], msgspec.Meta(max_length=MAX_SKILLS)]
_SETS = ("tags", "event_patterns", "claude_tools", "requires", "skills")
"""Lists whose order says nothing, and where a name that stands twice says no more."""


class Mount(msgspec.Struct, frozen=True):
    """One file."""

    path: str
    content: bytes
    read_only: bool = True
    """False: a holder may change it in its own session, and only there."""

    def to_json(self) -> dict[str, Any]:
        """What counts when definitions are compared."""
        return msgspec.structs.asdict(self)


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


class File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that holders find in their session file system."""

    path: Annotated[str, msgspec.Meta(max_length=1_024)]
    content: Annotated[str, msgspec.Meta(max_length=2 * MAX_BYTES)]
    encoding: Literal["text", "base64"] = "text"
    read_only: bool = True

    @property
    def mount(self) -> Mount:
        """The file in the form that definitions in files give.

        Raises:
            ValueError: the content is not base64.
        """
        content = self.content.encode()
        if self.encoding == "base64":
            import binascii  # noqa: PLC0415 - few capabilities bring files

            content = binascii.a2b_base64(content, strict_mode=True)
        return Mount(self.path, content, self.read_only)


Files = Annotated[tuple[File, ...], msgspec.Meta(max_length=MAX_FILES)]


class RuntimeDefinition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the author says; the keys are those of capabilities.yaml that a capability may have."""

    description: Description
    name: Label = ""
    category: Label = ""
    icon: Label = ""
    tags: Labels = ()
    features: Labels = ()
    event_patterns: Names = ()
    claude_tools: Names = ()
    requires: Names = ()
    mcp_tools: bool = True
    resource_limits: Limits = NO_LIMITS
    status: Status = "available"
    system_prompt: Prompt = ""
    inject: Inject = "always"
    skills: Skills = ()
    config_schema: dict[str, Any] | None = None
    mounts: Files = ()


class RuntimeVersion(msgspec.Struct, frozen=True):
    """A definition as it was at one time."""

    number: int
    definition: RuntimeDefinition
    definition_hash: str
    by: str
    at: float


class RuntimeCapability(msgspec.Struct, frozen=True, kw_only=True):
    """A capability with its author and its latest versions, the one in force last."""

    id: str
    author: str
    author_key: str = ""
    """The key that the author had: a later principal of the same name is not the author."""
    versions: tuple[RuntimeVersion, ...]

    @property
    def latest(self) -> RuntimeVersion:
        """The version in force."""
        return self.versions[-1]

    @property
    def folder(self) -> str:
        """Where its files lie: nobody else's files are in its way, and it is in nobody's."""
        return f"/capabilities/{self.id}/"

    @property
    def place(self) -> Place:
        """Where it comes from, in the place of a file."""
        return Place(f"user:{self.author}")

    @property
    def capability(self) -> Capability:
        """The definition in force, in the form that files give."""
        said, place = self.latest.definition, self.place
        fields = msgspec.structs.asdict(said) | {
            "event_patterns": tuple(
                PlacedPattern(EventPattern.parse(text), place) for text in said.event_patterns
            ),
            "claude_tools": tuple(Ref(name, place) for name in said.claude_tools),
            "requires": tuple(Ref(name, place) for name in said.requires),
            "mounts": tuple(file.mount for file in said.mounts),
            "version": str(self.latest.number),
        }
        return Capability(id=self.id, place=place, **fields)

    def changed(self, version: RuntimeVersion) -> "RuntimeCapability":
        """The same with another version in force; the oldest ones are forgotten."""
        kept = (*self.versions, version)[-MAX_VERSIONS:]
        return msgspec.structs.replace(self, versions=kept)


def definition_hash(id_: str, definition: RuntimeDefinition) -> str:
    """A fingerprint of all that a definition says; two that say the same have the same one."""
    import hashlib  # noqa: PLC0415 - 3 ms, and few homes have capabilities of this kind

    content = {"id": id_, **msgspec.to_builtins(definition)}
    content |= {name: sorted(set(getattr(definition, name))) for name in _SETS}
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()
