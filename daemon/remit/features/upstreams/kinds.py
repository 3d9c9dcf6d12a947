"""The keys of upstreams.yaml, and the kinds of values that only they have.

A variable or a header may hold a secret, so no problem repeats the value of one.
"""

import re
from typing import Any

import msgspec

from remit.config.strict.kinds import (
    BAD,
    ChoiceKind,
    DistinctKind,
    Field,
    ListKind,
    MapKind,
    RecordKind,
    Report,
    TextKind,
    WholeKind,
    file_kind,
)
from remit.config.strict.yaml import Mapping, Node, Scalar, Sequence
from remit.errors import Place, Problem
from remit.features.upstreams.secrets import is_secret_text, looks_secret, secret_argument
from remit.model.limits import EFFECTS
from remit.model.upstream import Upstream

SECRET_NAME = r"[A-Z_][A-Z0-9_]{0,127}"  # noqa: S105 - what names look like, not a secret
VARIABLE_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,127}"
HEADER_NAME = r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}"
HEADER_VALUE = r"[\t\x20-\x7e]*"
"""Without line breaks: a value must not become a second header."""
VARIABLE_VALUE = r"[^\x00]*"
TOOL_PATTERN = r"[^*\x00-\x1f\x7f]{1,256}\*?|\*"

SERVER_NAME = r"[a-z][a-z0-9_-]{0,31}"
MAX_UPSTREAMS = 256
MAX_CONCURRENCY = 256
TRUST = ("review", "on_first_use")
STARTS = ("lazy", "eager")
_TARGETS = ("command", "url")
_ONLY_WITH = {"args": "command", "env": "command", "cwd": "command", "headers": "url"}
MAX_SECONDS = 3600
MAX_PATTERNS = 1_000
_PROTOCOL_HEADERS = """
    accept connection content-length content-type host last-event-id mcp-protocol-version
    mcp-session-id te trailer transfer-encoding upgrade
"""


class SecretReference(msgspec.Struct, frozen=True):
    """The name of a secret, where others write a value."""

    name: str


class SecondsKind(msgspec.Struct, frozen=True):
    """A time that is more than nothing, and ends."""

    def read(self, node: Node, report: Report) -> Any:
        """Read a number of seconds."""
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            report.add(node.place, "wrong_type", "expected a number of seconds")
            return BAD
        if not 0 < value <= MAX_SECONDS:
            message = f"{value} is not above 0 and at most {MAX_SECONDS}"
            report.add(node.place, "out_of_range", message, "these are seconds")
            return BAD
        return float(value)

    def schema(self) -> dict[str, Any]:
        """A bounded number."""
        return {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_SECONDS}


class ToolPatternKind(TextKind, frozen=True):
    """The name of a tool; a `*` at the end stands for any ending."""

    def read(self, node: Node, report: Report) -> Any:
        """Read a pattern."""
        text = super().read(node, report)
        if text is BAD or re.fullmatch(TOOL_PATTERN, text):
            return text
        message = f"{text!r} is not the name of a tool or a pattern of such names"
        hint = "a '*' stands only at the end, as in 'delete_*'"
        report.add(node.place, "invalid_pattern", message, hint)
        return BAD

    def schema(self) -> dict[str, Any]:
        """A string whose only star stands at the end."""
        return {"type": "string", "pattern": r"^([^*]+\*?|\*)$", "maxLength": 257}


PATTERNS = DistinctKind(ToolPatternKind(limit=1024), single=True, most=MAX_PATTERNS)


class EffectsKind(msgspec.Struct, frozen=True):
    """`{tool or pattern: effect}`."""

    def read(self, node: Node, report: Report) -> Any:
        """Read every pair, also after a bad one."""
        if not isinstance(node, Mapping):
            report.add(node.place, "wrong_type", "expected a mapping", "write {get_*: read}")
            return BAD
        pairs = [(_PATTERN.read(k, report), _EFFECT.read(v, report)) for k, v in node.pairs]
        return {name: effect for name, effect in pairs if BAD not in (name, effect)}

    def schema(self) -> dict[str, Any]:
        """An object of effects."""
        names, effect = _PATTERN.schema(), _EFFECT.schema()
        return {"type": "object", "propertyNames": names, "additionalProperties": effect}


class _KeyPatternKind(ToolPatternKind, frozen=True):
    """The same where it is a key: a tool may be called `1` or `true`."""

    def read(self, node: Node, report: Report) -> Any:
        return super().read(_as_text(node) if isinstance(node, Scalar) else node, report)


def _as_text(key: Scalar) -> Scalar:
    return Scalar(key.text, key.text, key.place)


_PATTERN = _KeyPatternKind(limit=1024)
_EFFECT = ChoiceKind(EFFECTS)
SECRET = RecordKind(
    {
        "secret": Field(
            TextKind(pattern=SECRET_NAME, what="the name of a secret"),
            "Variable of the daemon that holds the value, or, with _FILE behind it, names its file",
            required=True,
        )
    },
    lambda values, _node: SecretReference(values["secret"]) if "secret" in values else BAD,
    "a secret",
)


class ValuesKind(msgspec.Struct, frozen=True):
    """`{NAME: text or {secret: NAME}}`; answers the open values and the names of secrets."""

    name: TextKind
    value: str
    what: str

    def read(self, node: Node, report: Report) -> Any:
        """Read every pair, also after a bad one."""
        if not isinstance(node, Mapping):
            report.add(node.place, "wrong_type", "expected a mapping", "write {NAME: text}")
            return BAD
        plain: dict[str, str] = {}
        secret: dict[str, str] = {}
        for key, value in node.pairs:
            name, found = self.name.read(_as_text(key), report), self._value(key, value, report)
            if isinstance(name, str) and isinstance(found, SecretReference):
                secret[name] = found.name
            elif isinstance(name, str) and isinstance(found, str):
                plain[name] = found
        return plain, secret

    def _value(self, key: Scalar, node: Node, report: Report) -> Any:
        if isinstance(node, Mapping):
            return SECRET.read(node, report)
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            hint = "put it in quotes, or write {secret: NAME}"
            report.add(node.place, "wrong_type", f"{self.what} is text", hint)
            return BAD
        if not re.fullmatch(self.value, node.value):
            hint = "take out line breaks and signs that are not plain text"
            report.add(node.place, "unsafe_value", f"this cannot stand in {self.what}", hint)
            return BAD
        if looks_secret(key.text, node.value):
            message = f"the value of {key.text} looks like a secret"
            hint = f"write {key.text}: {{secret: NAME}} and set NAME where the daemon is started"
            report.extend([_warning(node.place, "secret_in_file", message, hint)])
        return node.value

    def schema(self) -> dict[str, Any]:
        """An object of strings and names of secrets."""
        value = {"anyOf": [{"type": "string"}, SECRET.schema()]}
        names = self.name.schema()
        return {"type": "object", "propertyNames": names, "additionalProperties": value}


class HeaderNameKind(TextKind, frozen=True):
    """A header that is not one of the protocol's own."""

    def read(self, node: Node, report: Report) -> Any:
        """Read the name of a header."""
        name = super().read(node, report)
        if name is not BAD and name.lower() in _PROTOCOL_HEADERS.split():
            report.add(node.place, "invalid_name", f"{name} belongs to the protocol", "remove it")
            return BAD
        return name


class HeadersKind(ValuesKind, frozen=True):
    """Headers, whose names are the same however they are written."""

    def read(self, node: Node, report: Report) -> Any:
        """Read the pairs; none may stand twice."""
        seen: set[str] = set()
        for key, _ in node.pairs if isinstance(node, Mapping) else []:
            if key.text.lower() in seen:
                message = f"the header {key.text} stands here twice"
                report.add(key.place, "duplicate_key", message, "keep one of them")
            seen.add(key.text.lower())
        return super().read(node, report)


ENVIRONMENT = ValuesKind(
    TextKind(pattern=VARIABLE_NAME, what="the name of a variable"), VARIABLE_VALUE, "a variable"
)
HEADERS = HeadersKind(
    HeaderNameKind(pattern=HEADER_NAME, what="the name of a header"), HEADER_VALUE, "a header"
)


class UrlKind(TextKind, frozen=True):
    """The URL of a server."""

    def read(self, node: Node, report: Report) -> Any:
        """Read an address; what is open to listeners on the way is warned of."""
        text = super().read(node, report)
        if text is BAD:
            return BAD
        wrong, host = _wrong_with(text)
        if wrong:
            report.add(node.place, "bad_url", wrong, "write it as in https://example.org/mcp")
            return BAD
        if text.lower().startswith("http:") and not is_loopback(host):
            message = f"whatever is sent to {host} can be read and changed on the way"
            report.extend([_warning(node.place, "plain_http", message, "use https://")])
        if is_secret_text(text):
            hint = "send it in a header: headers: {Authorization: {secret: NAME}}"
            message = "this address looks as if it held a secret"
            report.extend([_warning(node.place, "secret_in_file", message, hint)])
        return text

    def schema(self) -> dict[str, Any]:
        """An address of the web."""
        return {"type": "string", "pattern": "^https?://", "maxLength": self.limit}


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine; a name that only begins like its address is not."""
    import ipaddress  # noqa: PLC0415 - only for those who have a server by url

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _warning(place: Place, code: str, message: str, hint: str) -> Problem:
    return Problem(place, code, message, hint, "warning")


def _wrong_with(url: str) -> tuple[str, str]:
    """What is wrong with an address, and its host. The address itself may hold a secret."""
    from urllib.parse import urlsplit  # noqa: PLC0415 - only for those who have a server by url

    if any(char.isspace() or not char.isprintable() or char == "\\" for char in url):
        return "an address has no blanks in it", ""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        parts.port  # noqa: B018 - reading it checks it
    except ValueError:
        return "this is not an address", ""
    if parts.scheme.lower() not in ("http", "https"):
        return "only http and https are understood", host
    if not host:
        return "the address names no host", host
    if "@" in parts.netloc:
        return "a name and a password cannot stand in an address", host
    return ("an address ends before its '#'", host) if parts.fragment else ("", host)


class _ArgumentsKind(ListKind, frozen=True):
    """Arguments of a command."""

    def read(self, node: Node, report: Report) -> Any:
        """Read them; everybody on the machine sees them, so a secret among them is warned of."""
        items = node.items if isinstance(node, Sequence) else []
        texts = [item.text if isinstance(item, Scalar) else "" for item in items]
        for item, text, before in zip(items, texts, ["", *texts], strict=False):
            if secret_argument(text, before):
                message = "this argument looks like a secret, and everybody here can see it"
                hint = "let the server read it from a variable: env: {NAME: {secret: NAME}}"
                report.extend([_warning(item.place, "secret_in_file", message, hint)])
        return super().read(node, report)


_TEXT = TextKind(limit=8_192, pattern=r"[^\x00]*", what="text")
_HOME = r"(?!~[^/])"
"""The home of somebody else is not looked up."""
_TOOLS = "Names of tools; a * at the end stands for any ending"

UPSTREAM_FIELDS: dict[str, Field] = {
    "command": Field(
        TextKind(limit=4_096, pattern=_HOME + r"[^\x00\r\n]+", what="a command"),
        "Program that speaks MCP over its standard streams: a name on PATH or a full path",
    ),
    "args": Field(
        _ArgumentsKind(_TEXT), "Its arguments; they are seen by everybody on the machine"
    ),
    "env": Field(ENVIRONMENT, "Variables of its process, each as text or {secret: NAME}"),
    "cwd": Field(
        TextKind(limit=4_096, pattern=_HOME + r"[^\x00]+", what="a folder"),
        "The folder in which it runs; a relative one starts at this file",
    ),
    "url": Field(UrlKind(limit=2_048), "Where a server listens, as in https://example.org/mcp"),
    "headers": Field(HEADERS, "Headers of each request, each as text or {secret: NAME}"),
    "include": Field(PATTERNS, f"{_TOOLS}; only these are let in, all when absent"),
    "exclude": Field(PATTERNS, f"{_TOOLS}; these are never let in"),
    "effects": Field(EffectsKind(), "What tools do, by name or pattern, whatever they say"),
    "trust": Field(
        ChoiceKind(TRUST),
        "review: each tool waits for an operator; on_first_use: only one that changed does",
    ),
    "start": Field(ChoiceKind(STARTS), "lazy: with the first call; eager: with the daemon"),
    "timeout": Field(SecondsKind(), "Seconds for one call"),
    "start_timeout": Field(SecondsKind(), "Seconds until it must have listed its tools"),
    "concurrency": Field(WholeKind(1, MAX_CONCURRENCY), "Calls that may run at once"),
}


class _UpstreamKind(RecordKind, frozen=True):
    """One server: reached by exactly one way."""

    def read(self, node: Node, report: Report) -> Any:
        found = super().read(node, report)
        if not isinstance(node, Mapping):
            return found
        keys = {key.text: key.place for key, _ in node.pairs}
        ways = [name for name in _TARGETS if name in keys]
        if len(ways) != 1:
            message = "a server has either 'command' or 'url'"
            hint = "write the program to start, or where the server listens"
            report.add(node.place, "upstream_target", message, hint)
            return BAD
        for name, way in _ONLY_WITH.items():
            if name in keys and way not in keys:
                message = f"{name!r} means nothing beside {ways[0]!r}"
                report.add(keys[name], "upstream_target", message, f"it belongs to {way!r}")
        _check_command(node, report)
        return found

    def schema(self) -> dict[str, Any]:
        """An object with one of the two ways."""
        one = [{"required": [name]} for name in _TARGETS]
        needs = {name: [way] for name, way in _ONLY_WITH.items()}
        return super().schema() | {"oneOf": one, "dependentRequired": needs}


def _check_command(node: Mapping, report: Report) -> None:
    for key, value in node.pairs:
        text = getattr(value, "value", None)
        if key.text == "command" and isinstance(text, str) and "/" not in text and " " in text:
            hint = f"write command: {text.split()[0]} and put the rest into args: [...]"
            report.add(value.place, "invalid_name", "a command is a single word", hint)


def _upstream(name: str, place: Place, values: dict[str, Any]) -> Upstream:
    for key in ("env", "headers"):
        values[key], values[f"secret_{key}"] = values.pop(key, ({}, {}))
    return Upstream(name=name, place=place, **values)


UPSTREAM_FILE = file_kind(
    "upstreams.yaml",
    "upstreams",
    MapKind(
        TextKind(pattern=SERVER_NAME, what="the name of a server"),
        _UpstreamKind(UPSTREAM_FIELDS, lambda values, _node: values, "a server"),
        _upstream,
    ),
    "The servers, by name",
)
