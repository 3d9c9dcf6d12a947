"""What runs for whom just now, so that it can be ended when its caller is shut out."""

import math
from collections.abc import Generator
from contextlib import contextmanager

import anyio


class Running:
    """The calls of a face that are under way, by the name of their caller."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._scopes: dict[str, dict[anyio.CancelScope, str]] = {}

    def is_full(self, name: str) -> bool:
        """Tell whether a caller has as many calls under way as it may."""
        return len(self._scopes.get(name, ())) >= self.limit

    @contextmanager
    def held(
        self, name: str, *, mark: str = "", deadline: float = math.inf
    ) -> Generator[anyio.CancelScope]:
        """Run something for a caller; the scope swallows its end when the caller is shut out.

        Args:
            name: the caller.
            mark: by what it came in, such as a token.
            deadline: when it is shut out at the latest.
        """
        scope = anyio.CancelScope(deadline=deadline)
        self._scopes.setdefault(name, {})[scope] = mark
        try:
            with scope:
                yield scope
        finally:
            left = self._scopes[name]
            del left[scope]
            if not left:
                del self._scopes[name]

    def end(self, name: str, *, mark: str | None = None) -> int:
        """End what runs for a caller, or only what has this mark; tell how many calls that were."""
        held = self._scopes.get(name, {})
        scopes = [scope for scope, given in held.items() if mark in (None, given)]
        for scope in scopes:
            scope.cancel()
        return len(scopes)
