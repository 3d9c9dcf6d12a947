"""Problems of files in the log: each once, however often the files are read."""

from collections.abc import Iterable

import structlog

from remit.model.place import Problem

log = structlog.get_logger()


class ProblemLog:
    """Remembers what it told; a problem that went away and came back is told again."""

    def __init__(self, event: str) -> None:
        """Begin with nothing told.

        Args:
            event: the name of the line in the log.
        """
        self._event = event
        self._told: frozenset[tuple[str, str, str]] = frozenset()

    def tell(self, problems: Iterable[Problem]) -> None:
        """Write those that were not there at the last call."""
        found = {(str(one.place), one.code, one.message): one for one in problems}
        for key, problem in found.items():
            if key not in self._told:
                write = log.error if problem.is_error else log.warning
                write(
                    self._event,
                    problem=f"{problem.place}: {problem.message} [{problem.code}]",
                    hint=problem.hint,
                )
        self._told = frozenset(found)
