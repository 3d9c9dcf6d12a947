"""What a server is started with: variables and headers, with the secrets filled in."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from remit.features.upstreams.client.output import Chatter, Masks
from remit.features.upstreams.client.types import Limits
from remit.model.upstream import Upstream

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


class CannotStartError(Exception):
    """Why a server cannot be started."""


class HandshakeError(CannotStartError):
    """It was started, and then there was no agreement."""


class Outfit(msgspec.Struct, frozen=True):
    """What one start needs."""

    env: Mapping[str, str]
    headers: Mapping[str, str]
    masks: Masks


def outfit(upstream: Upstream, secret: Callable[[str], str | None]) -> Outfit:
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
    return Outfit(env, headers, Masks(values))


def command_line(upstream: Upstream, path: str) -> list[str]:
    """The command with its full path.

    Raises:
        CannotStartError: there is no such program.
    """
    if "/" in upstream.command:
        named = str(Path(upstream.cwd or ".") / Path(upstream.command).expanduser())
        found = shutil.which(named)
    else:
        found = shutil.which(upstream.command, path=path)
    if found is None:
        raise CannotStartError(f"there is no program {upstream.command}")
    return [str(Path(found).absolute()), *upstream.args]


# Everything for one start of a server.


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is started, this time."""

    upstream: Upstream
    outfit: Outfit
    launcher: Sequence[str]
    limits: Limits
    errors: Chatter
    noise: Chatter
    mode: str
    """The greeting: see `eras`."""
