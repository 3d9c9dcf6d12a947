"""How this command was called, so that every command that a screen names can be typed as it stands.

Texts of the daemon and of the definitions name `remit`; what is shown to people names the command
that they typed. Answers for programs (`--json`) always say `remit`.
"""

import functools
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

from remit.cli.commands import COMMANDS

_CANONICAL = "remit"


def invoked_as() -> str:
    """The words in front of the arguments: `remit`, `./tools/run`, `python -m remit`."""
    return os.environ.get("REMIT_INVOKED_AS") or _from_arguments(
        tuple(sys.argv[:1]), tuple(sys.orig_argv)
    )


def as_invoked(text: str) -> str:
    """A text for people, in which every `remit COMMAND` is called as this one was."""
    if _CANONICAL not in text:
        return text
    command = invoked_as()
    return text if command == _CANONICAL else _pattern().sub(lambda _: f"{command} ", text)


@functools.cache
def _from_arguments(program: tuple[str, ...], original: tuple[str, ...]) -> str:
    path = Path(program[0] if program else "")
    if path.name == "__main__.py" and path.parent.name == _CANONICAL:
        at = next((at for at, word in enumerate(original) if word == _CANONICAL), None)
        return _CANONICAL if at is None else shlex.join(original[: at + 1])
    if path.name != _CANONICAL:
        return _CANONICAL  # a program that runs commands inside, as tests do
    found = shutil.which(_CANONICAL)
    is_found = found is not None and path.exists() and path.samefile(found)
    return _CANONICAL if is_found else shlex.quote(str(path))


@functools.cache
def _pattern() -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./-]){_CANONICAL} (?=(?:{'|'.join(COMMANDS)})\b(?!-)|--)")
