"""Secrets of a server kept out of everything that it or a failure says."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

MASK = "***"
_SHORTEST = 4
"""Shorter ones cannot be told from other text; replacing `1` would tell more than it hides."""


class Masks:
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
