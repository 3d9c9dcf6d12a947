"""What becomes of a value in a host's file: kept as it is, or named as a secret.

INVARIANT: no value that looks like a secret is answered, shown or written; only its name is.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from remit.features.upstreams.secrets import is_secret_text, looks_secret, secret_argument

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-.*)?", re.DOTALL)
_LONGEST_SHOWN = 60
_SECRET_LENGTH = 120


class Unusable(Exception):  # noqa: N818 - caught where a server is taken over, and told there
    """Something that cannot stand in upstreams.yaml; the message says what, the hint what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Needed(msgspec.Struct, frozen=True):
    """A secret that has to be set before a server can start."""

    name: str
    server: str
    place: str
    """The variable or header that it is for."""
    was: str
    """What stood there, without giving away a secret."""


class Names:
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


def take_value(
    key: str, text: str, *, server: str, names: Names, inputs: Mapping[str, str]
) -> tuple[Any, Needed | None]:
    """The value as it is written to upstreams.yaml, and the secret that it needs.

    Raises:
        Unusable: only the host can fill it in.
    """
    inside = _REFERENCE.findall(text)
    if not inside:
        if not looks_secret(key, text):
            return text, None
        return _named(Needed(names.give(server, key), server, key, "a value that looks secret"))
    for one in inside:
        _check_reference(one, key)
    whole = _REFERENCE.fullmatch(text)
    variable = _VARIABLE.fullmatch(inside[0])
    if whole and variable:
        return _named(Needed(variable[1].upper(), server, key, _shown(text)))
    if whole:
        asked = inputs.get(inside[0].removeprefix("input:"), "")
        was = f"{text}, asked for as {asked!r}" if asked else text
        return _named(Needed(names.give(server, key), server, key, was))
    was = f"put together: {_shown(text)}"
    return _named(Needed(names.give(server, key), server, key, was))


def _named(needed: Needed) -> tuple[Any, Needed]:
    return {"secret": needed.name}, needed


def _check_reference(inside: str, key: str) -> None:
    found = _VARIABLE.fullmatch(inside)
    if inside.startswith("input:") or (inside.startswith("env:") and found):
        return
    # ${workspaceFolder} and the like are no variables of the environment.
    if found is None or found[1] != found[1].upper():
        message = f"{key} refers to ${{{inside[:_LONGEST_SHOWN]}}}, which only the host fills in"
        raise Unusable(message, "write the value out in the host's file, or add it by hand")


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
        Unusable: it looks like one, or refers to something.
    """
    if _REFERENCE.search(text):
        message = f"{place} refers to ${{…}}, which only the host fills in"
        raise Unusable(message, "write it out in the host's file, or add the server by hand")
    if secret_argument(text, flag):
        message = f"{place} looks like a secret, and there it cannot be hidden"
        hint = "let the server read it from a variable (env), then import again"
        raise Unusable(message, hint)
