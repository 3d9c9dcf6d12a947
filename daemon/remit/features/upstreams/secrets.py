"""Secrets of upstream servers: where their values come from, and which texts look like one.

A value is read from the variable NAME, or else from the file that the variable NAME_FILE names, as
containers mount secrets. An empty value counts as missing: a server must not be asked with half a
header.

Whether a text looks like a secret is a guess that errs to the safe side: a harmless value that is
taken for a secret has to be set as a variable, a secret that is taken for harmless would lie in a
file for ever.

INVARIANT: no value of a host's file that looks like a secret is answered, shown or written; only
its name is.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

MAX_SECRET = 64 * 1024
_NAMES = re.compile(
    r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PWD|CREDENTIALS?|AUTH|AUTHORI[SZ]ATION|COOKIE|"
    r"SIGNATURE|DSN|PAT|BEARER|JWT)"
)
_ABOUT = re.compile(
    r"ENABLED|ENDPOINT|EXPIRY|FILE|FORMAT|HOST|LENGTH|LIMIT|MAX|METHOD|MODE|NAME|PATH|PROVIDER|"
    r"SCHEME|SCOPE|SIZE|TIMEOUT|TTL|TYPE|URL"
)
"""The last word of a name that tells something about a secret, as in TOKEN_URL."""
_MARKS = re.compile(
    r"(?:^|[\s=:,'\"])(?:sk-|sk_|pk_|rk_|gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|xapp-|AKIA|ASIA|AIza|"
    r"ya29\.|eyJ[\w-]{8}|npm_|pypi-|hf_|dop_v1_|lin_api_|ntn_|whsec_|SG\.)[\w.-]{6}"
    r"|-----BEGIN|\b(?:Bearer|Basic|Token)\s+\S"
    r"|(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,30}://[^/\s:@]*:[^/\s@]+@",
    re.ASCII,
)
_IN_QUERY = re.compile(
    r"[?&;](?:[\w.-]*(?:key|token|secret|password|passwd|pwd|auth|sig|signature|code))=[^&#\s]",
    re.IGNORECASE,
)
_RUN = re.compile(r"[A-Za-z0-9+]{16,}")
"""Between the signs that join words and folders."""
_LEAST_KINDS, _LEAST_DIGITS = 10, 2
_JOINED = re.compile(r"[A-Za-z0-9_-]{20,}")
_CHANGES = re.compile(r"[A-Z]+|[a-z]+|[0-9]+|[_-]+")
_LEAST_CHANGES = 0.52
"""Of neighbours that are of another sort: words, however they are joined, have fewer."""
_ORDINARY = re.compile(
    r"sha256:[0-9a-f]{64}|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE
)
"""Digests of images and ids of things: long, and no secrets by themselves."""
_PLAIN = frozenset({"", "true", "false", "yes", "no", "on", "off", "none", "null", "0", "1"})
_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-.*)?", re.DOTALL)
_LONGEST_SHOWN = 60
_SECRET_LENGTH = 120


class SecretValue(msgspec.Struct, frozen=True):
    """A value, or a sentence why there is none. It does not show its value."""

    value: str | None
    why: str = ""

    def __repr__(self) -> str:
        return f"Secret({self.why or 'there'})"


def find_secret(name: str, env: Mapping[str, str] = os.environ) -> SecretValue:
    """Look a secret up; it is looked up anew each time, so that it can be changed."""
    if env.get(name):
        return SecretValue(env[name])
    file = env.get(f"{name}_FILE")
    if not file:
        return SecretValue(None, f"the variable {name} is not set, nor is {name}_FILE")
    try:
        with Path(file).open("rb") as stream:
            raw = stream.read(MAX_SECRET + 1)
        text = raw.decode().rstrip("\r\n")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        return SecretValue(None, f"the file that {name}_FILE names cannot be read: {why}")
    if len(raw) > MAX_SECRET:
        return SecretValue(None, f"the file that {name}_FILE names has over {MAX_SECRET:,} bytes")
    return SecretValue(text or None, "" if text else f"the file that {name}_FILE names is empty")


def secret_value(name: str) -> str | None:
    """The value of a secret, or None."""
    return find_secret(name).value


def is_secret_name(name: str) -> bool:
    """Tell whether something of this name usually holds a secret, as API_KEY does."""
    # apiKey, api-key and API_KEY are one name.
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).upper()
    words = [word for word in re.split(r"[^A-Z0-9]+", apart) if word]
    if words and _ABOUT.fullmatch(words[-1]):
        return False
    return any(_NAMES.fullmatch(word) or _ends_like_one(word) for word in words)


def _ends_like_one(word: str) -> bool:
    return word.endswith(("APIKEY", "TOKEN", "SECRET", "PASSWORD", "ACCESSKEY", "PRIVATEKEY"))


def is_secret_text(text: str) -> bool:
    """Tell whether a text looks like a secret, whatever it is called."""
    if _MARKS.search(text) or _IN_QUERY.search(text):
        return True
    rest = _ORDINARY.sub(" ", text)
    return any(map(_is_random, _RUN.findall(rest))) or any(map(_is_mixed, _JOINED.findall(rest)))


def _is_random(run: str) -> bool:
    """Tell whether nobody would call this a word."""
    digits = sum(map(str.isdigit, run))
    return _LEAST_DIGITS <= digits < len(run) and len(set(run)) >= _LEAST_KINDS


def _is_mixed(run: str) -> bool:
    """Tell whether large and small letters and digits follow each other without an order."""
    if not all(re.search(sort, run) for sort in ("[A-Z]", "[a-z]", "[0-9]")):
        return False
    return len(_CHANGES.findall(run)) - 1 >= _LEAST_CHANGES * len(run)


def looks_secret(name: str, text: str) -> bool:
    """Tell whether the value of a variable or header looks like a secret."""
    if text.strip().lower() in _PLAIN:
        return False
    return is_secret_name(name) or is_secret_text(text)


def secret_argument(text: str, before: str = "") -> bool:
    """Tell whether an argument of a command looks like a secret, or as if it held one.

    `before` is the argument that stands before it: the value of --token is one, whatever it is.
    """
    name, equals, value = text.partition("=")
    if equals and name.startswith("-") and looks_secret(name, value):
        return True
    is_value = before.startswith("-") and "=" not in before and not text.startswith("-")
    return is_secret_text(text) or (is_value and looks_secret(before, text))


class UnusableError(Exception):
    """Something that cannot stand in upstreams.yaml; the message says what, the hint what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class NeededSecret(msgspec.Struct, frozen=True):
    """A secret that has to be set before a server can start."""

    name: str
    server: str
    place: str
    """The variable or header that it is for."""
    was: str
    """What stood there, without giving away a secret."""


class SecretNames:
    """Gives names to secrets; two values never get the same one."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def give(self, server: str, key: str) -> str:
        """A name made of the server and the key, that nothing else has."""
        owner, own = _words(server), _words(key)
        base = own if own.startswith(f"{owner}_") else f"{owner}_{own}"
        base = base[:_SECRET_LENGTH]
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name


def _words(text: str) -> str:
    plain = re.sub(r"[^A-Z0-9]+", "_", text.upper()).strip("_")
    return f"_{plain}" if not plain or plain[0].isdigit() else plain


def referenced(text: str) -> set[str]:
    """The variables of the environment that a text refers to, as names of secrets."""
    found = (_VARIABLE.fullmatch(inside) for inside in _REFERENCE.findall(text))
    return {match[1].upper() for match in found if match}


def import_value(
    key: str, text: str, *, server: str, names: SecretNames, inputs: Mapping[str, str]
) -> tuple[Any, NeededSecret | None]:
    """The value as it is written to upstreams.yaml, and the secret that it needs.

    Raises:
        UnusableError: only the host can fill it in.
    """
    inside = _REFERENCE.findall(text)
    if not inside:
        if not looks_secret(key, text):
            return text, None
        return _named(
            NeededSecret(names.give(server, key), server, key, "a value that looks secret")
        )
    for one in inside:
        _check_reference(one, key)
    whole = _REFERENCE.fullmatch(text)
    variable = _VARIABLE.fullmatch(inside[0])
    if whole and variable:
        return _named(NeededSecret(variable[1].upper(), server, key, _shown(text)))
    if whole:
        asked = inputs.get(inside[0].removeprefix("input:"), "")
        was = f"{text}, asked for as {asked!r}" if asked else text
        return _named(NeededSecret(names.give(server, key), server, key, was))
    was = f"put together: {_shown(text)}"
    return _named(NeededSecret(names.give(server, key), server, key, was))


def _named(needed: NeededSecret) -> tuple[Any, NeededSecret]:
    return {"secret": needed.name}, needed


def _check_reference(inside: str, key: str) -> None:
    found = _VARIABLE.fullmatch(inside)
    if inside.startswith("input:") or (inside.startswith("env:") and found):
        return
    # ${workspaceFolder} and the like are no variables of the environment.
    if found is None or found[1] != found[1].upper():
        message = f"{key} refers to ${{{inside[:_LONGEST_SHOWN]}}}, which only the host fills in"
        raise UnusableError(message, "write the value out in the host's file, or add it by hand")


def _shown(text: str) -> str:
    """The text with its references, unless what stands around them may be secret."""
    around = _REFERENCE.sub(" ", text)
    plain = around.replace("Bearer", "").replace("Basic", "").replace("Token", "")
    hidden = is_secret_text(plain) or ":-" in text or len(text) > _LONGEST_SHOWN
    if not hidden:
        return text
    names = [f"${{{one.partition(':-')[0]}}}" for one in _REFERENCE.findall(text)]
    return " and ".join(names) + (", without its default" if ":-" in text else "")


def check_open(place: str, text: str, *, flag: str = "") -> None:
    """Check a text that cannot be a secret, because everybody may see it.

    Raises:
        UnusableError: it looks like one, or refers to something.
    """
    if _REFERENCE.search(text):
        message = f"{place} refers to ${{…}}, which only the host fills in"
        raise UnusableError(message, "write it out in the host's file, or add the server by hand")
    if secret_argument(text, flag):
        message = f"{place} looks like a secret, and there it cannot be hidden"
        hint = "let the server read it from a variable (env), then import again"
        raise UnusableError(message, hint)
