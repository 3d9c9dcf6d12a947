"""The commands that an operator allows to be started, found on PATH."""

import os
import shutil
from collections.abc import Iterable

from remit.model.launch import Launch
from remit.model.place import Problem
from remit.policy.catalogue import Catalogue

HINT = "an operator lists it in the setting launch_commands"


class Commands:
    """A list of commands; one that is not installed allows nothing."""

    def __init__(self, names: Iterable[str]) -> None:
        self._paths = frozenset(path for name in names if (path := _find(name)))

    def path_of(self, launch: Launch) -> str | None:
        """The full path of what is to be started, or None when it may not be."""
        path = _find(launch.starts) if launch.starts else None
        return path if path in self._paths else None


def _find(name: str) -> str | None:
    """A full path, so that it means the same in the folder where the process runs."""
    found = shutil.which(name)
    return None if found is None else os.path.abspath(found)  # noqa: PTH100 - keeps links


def launcher_warnings(catalogue: Catalogue, commands: Commands) -> list[Problem]:
    """Profiles whose process would not be started here; each launcher is told once."""
    placed = {one.place: one.launch for g in catalogue.grants.values() if (one := g.launcher)}
    return [
        Problem(
            place,
            "command_not_allowed",
            f"the command {launch.starts!r} may not be launched here",
            HINT if shutil.which(launch.starts) else f"install it; {HINT}",
            severity="warning",
        )
        for place, launch in sorted(placed.items(), key=lambda pair: pair[0])
        if launch.starts and commands.path_of(launch) is None
    ]
