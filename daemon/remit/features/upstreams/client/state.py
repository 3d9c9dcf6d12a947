"""One upstream server while it runs: what it is started with, what it lists, and how it is.

Its secrets are masked in everything that it or a failure says, and what it writes is slowed down
when it is too much.
"""

import math
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import anyio
import msgspec

from remit.model.upstream import Upstream, UpstreamTool

State = Literal["idle", "starting", "ready", "failing", "stopped"]
Progress = Callable[[float, float | None, str], None]
"""Told how far a call is: how much, of how much (None: unknown), and a line of text."""
INHERITED = (
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
)
"""The only variables of the daemon that a server gets unasked: none of them holds a secret."""
MASK = "***"
_SHORTEST = 4
"""Shorter ones cannot be told from other text; replacing `1` would tell more than it hides."""
_LONGEST = 300
_READ = _LONGEST * 16
"""Bytes of a line that are looked at."""
_PER_SPAN = 20
_SPAN = 60.0


class OmittedTool(msgspec.Struct, frozen=True):
    """A tool of a server that cannot be taken over."""

    name: str
    reason: str


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """All tools of a server at one moment, in its order; names are unique."""

    tools: tuple[UpstreamTool, ...]
    protocol: str = ""
    server_name: str = ""
    server_version: str = ""
    left_out: int = 0
    """How many tools are not among them."""
    reasons: tuple[OmittedTool, ...] = ()
    """Why, for the first of those that were left out."""

    def is_same(self, other: "Listing | None") -> bool:
        """Tell whether both say the same, as JSON: for Python 1, 1.0 and True are equal."""
        ours, theirs = (msgspec.json.encode(one, order="deterministic") for one in (self, other))
        return ours == theirs


OnListed = Callable[[Listing], Awaitable[None]]
"""Told each list of tools."""


class CallOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a tool, as MCP writes it: blocks of content, and data beside them."""

    content: list[dict[str, Any]]
    structured_content: Any | None = None
    is_error: bool = False


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The health of a server. `since` is when this state began, by the clock of the client."""

    state: State = "idle"
    reason: str = ""
    """Why it is failing or stopped; no secret is in it."""
    since: float = 0.0
    restarts: int = 0
    calls: int = 0
    failures: int = 0
    """Calls that got no answer: errors that a tool tells are answers."""
    last_error: str = ""
    protocol: str = ""
    server_info: str = ""
    latency: float | None = None
    """Seconds that a call takes, smoothed over the last ones; None: none was answered yet."""
    retry_after: float | None = None
    """Seconds until the next start is tried, when failing."""


class ClientLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on what an upstream server may send."""

    message_bytes: int = 4 * 1024 * 1024
    """One message: a result, or one page of a list."""
    list_bytes: int = 16 * 1024 * 1024
    """All definitions of tools together."""
    tools: int = 2_000
    pages: int = 200
    waiting: int = 64
    """Calls that wait for a free slot; one more is refused."""
    relist_seconds: float = 1.0
    """A server that keeps changing its list is asked for it so often; the first times sooner."""
    stop_seconds: float = 2.0
    """From asking a process to end until it is killed."""
    first_pause: float = 0.5
    longest_pause: float = 60.0
    well_after: float = 60.0
    """A server that ran so long starts anew from the first pause when it fails."""


class ServerGoneError(Exception):
    """The server went away, or could not be asked; the text says what is known of it."""


class ListRequest:
    """Somebody waits for a list; all who come before it is asked for share one."""

    def __init__(self) -> None:
        self._done = anyio.Event()
        self._listing: Listing | None = None
        self._reason = ""

    def give(self, listing: Listing) -> None:
        """Here it is."""
        self._listing = listing
        self._done.set()

    def refuse(self, reason: str) -> None:
        """There will be none."""
        self._reason = reason
        self._done.set()

    async def wait(self) -> Listing:
        """The list.

        Raises:
            ServerGoneError: there is none.
        """
        await self._done.wait()
        if self._listing is None:
            raise ServerGoneError(self._reason)
        return self._listing


class Signals:
    """Signals of a connection: it ended, or its list may have changed.

    `wake` is set by either, and renewed by who waits.
    """

    def __init__(self) -> None:
        self.wake = anyio.Event()
        self.ended = False
        self.reason = ""
        self.changed_at: float | None = None

    def end(self, reason: str = "") -> None:
        """It cannot be used any more; the first reason counts."""
        self.reason = self.reason or reason
        self.ended = True
        self.wake.set()

    def change(self) -> None:
        """Its list may have changed; however often this is said, it is once until someone looks."""
        if self.changed_at is None:
            self.changed_at = anyio.current_time()
            self.wake.set()


class SecretMasks:
    """The secrets that one server was started with."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {part for secret in secrets for part in (secret, *secret.split())}
        # Longest first: one may be a part of another.
        self._secrets = sorted(
            (one for one in known if len(one) >= _SHORTEST and one not in ("Bearer", "Basic")),
            key=len,
            reverse=True,
        )
        self._on_the_wire = [msgspec.json.encode(one)[1:-1] for one in self._secrets]

    @property
    def longest(self) -> int:
        """Characters of the longest secret."""
        return len(self._secrets[0]) if self._secrets else 0

    def text(self, text: str) -> str:
        """A text without the secrets."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text

    def value(self, value: Any, encoded: bytes) -> Any:
        """A JSON value without the secrets.

        Args:
            value: what may have them.
            encoded: the same as `msgspec.json` writes it, where a look is quick.
        """
        if not any(secret in encoded for secret in self._on_the_wire):
            return value
        return self._inside(value)

    def _inside(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(name)): self._inside(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self._inside(one) for one in value]
        return value


class Throttle:
    """A rate limit in units a second: whoever writes faster waits for us.

    A server that floods us is slowed by its own full pipe, and costs no more than this.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._since = 0.0
        self._count = 0

    async def spend(self, amount: int = 1) -> None:
        """Count something, and wait when it was too much."""
        now = anyio.current_time()
        if now - self._since >= 1:
            self._since, self._count = now, 0
        self._count += amount
        if self._count > self._most:
            await anyio.sleep(self._since + 1 - now)


class ServerOutput:
    """The output of a server on one stream, without secrets and bounded in length and number."""

    def __init__(self, log: Any, masks: SecretMasks, *, stream: str) -> None:
        self._log = log
        self._masks = masks
        self._stream = stream
        self._since = 0.0
        self._logged = 0
        self._left = b""
        self.last = ""

    def hear(self, piece: bytes) -> None:
        """Take some output, which may end in the middle of a line."""
        *lines, self._left = (self._left + piece).split(b"\n")
        self._left = self._left[: _READ + 1]
        for line in lines if len(lines) <= _PER_SPAN else [*lines[: _PER_SPAN - 1], lines[-1]]:
            self.say(line)

    def say(self, line: bytes) -> None:
        """Take one line."""
        # Masked before it is cut: half a secret is one too.
        text = self._masks.text(line[:_READ].decode(errors="replace").strip())
        if len(line) > _READ:  # of what was cut here its end may be one
            text = text[: max(0, len(text) - self._masks.longest)]
        shown = "".join(c if c.isprintable() else " " for c in text[:_LONGEST])
        if not shown:
            return
        self.last = shown
        now = anyio.current_time()
        if now - self._since >= _SPAN:
            self._since, self._logged = now, 0
        self._logged += 1
        if self._logged <= _PER_SPAN:
            self._log.info("upstream_said", stream=self._stream, line=shown)
        elif self._logged == _PER_SPAN + 1:
            self._log.info("upstream_says_too_much", stream=self._stream)

    def rest(self) -> None:
        """The stream has ended: what is left is a line too."""
        left, self._left = self._left, b""
        self.say(left)


class CannotStartError(Exception):
    """A server cannot be started; the text says why."""


class HandshakeError(CannotStartError):
    """The server was started, and the handshake failed."""


class Environment(msgspec.Struct, frozen=True):
    """The variables and headers of a server for one start, with the secrets filled in."""

    env: Mapping[str, str]
    headers: Mapping[str, str]
    masks: SecretMasks


def environment_of(upstream: Upstream, secret: Callable[[str], str | None]) -> Environment:
    """Read the secrets and put everything together.

    Raises:
        CannotStartError: a secret is missing, or cannot be written where it belongs.
    """
    env = {name: os.environ[name] for name in INHERITED if name in os.environ}
    env |= upstream.env
    headers = dict(upstream.headers)
    values = []
    for target, wanted, bad in (
        (env, upstream.secret_env, "\0"),
        (headers, upstream.secret_headers, "\0\r\n"),
    ):
        for place, name in wanted.items():
            value = secret(name)
            if not value:
                raise CannotStartError(f"the secret {name} is not set")
            if any(character in value for character in bad):
                raise CannotStartError(f"the secret {name} has characters that {place} cannot have")
            target[place] = value
            values.append(value)
    return Environment(env, headers, SecretMasks(values))


def command_line(upstream: Upstream, path: str) -> list[str]:
    """The command with its full path.

    Raises:
        CannotStartError: there is no such program.
    """
    from shutil import which  # noqa: PLC0415 - half a megabyte of compressors

    if "/" in upstream.command:
        named = str(Path(upstream.cwd or ".") / Path(upstream.command).expanduser())
        found = which(named)
    else:
        found = which(upstream.command, path=path)
    if found is None:
        raise CannotStartError(f"there is no program {upstream.command}")
    return [str(Path(found).absolute()), *upstream.args]


class StartParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The entry, environment, bounds and outputs of one start of a server."""

    upstream: Upstream
    environment: Environment
    guard: Sequence[str]
    limits: ClientLimits
    errors: ServerOutput
    noise: ServerOutput
    mode: str
    """The greeting: see `eras`."""


def has_no_number(value: Any, encoded: bytes) -> bool:
    """Tell whether a JSON value has a NaN or an infinity in it.

    Args:
        value: what may have one.
        encoded: the same as `msgspec.json` writes it, where a look is quick.
    """
    if b"null" not in encoded:
        return False
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, float) and not math.isfinite(one):
            return True
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return False
