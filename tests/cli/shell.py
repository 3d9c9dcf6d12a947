"""Running commands in this process."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from remit.cli.main import main


class Done(NamedTuple):
    """How a command ended and what it printed where."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    """Runs commands as `remit ARGUMENTS…` would."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def run(self, *arguments: str) -> Done:
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        printed = self._capsys.readouterr()
        code = ended.value.code
        return Done(code if isinstance(code, int) else 0, printed.out, printed.err)

    def json(self, *arguments: str, code: int = 0) -> Any:
        """The JSON answer of a command that must end with this code."""
        done = self.run(*arguments, "--json")
        assert done.code == code, done
        return done.json

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path
