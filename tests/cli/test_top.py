"""The picture of `remit top` stands still while it changes."""

import os

import pytest

from remit.cli import audit


@pytest.fixture
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((10, 4)))


@pytest.mark.usefixtures("_terminal")
def test_a_picture_is_drawn_over_the_one_before(capsys: pytest.CaptureFixture[str]) -> None:
    drawn = audit._draw("one\ntwo", 0)
    assert capsys.readouterr().out == "\r\x1b[Jone\ntwo\n"
    assert audit._draw("three", drawn) == 1
    assert capsys.readouterr().out == "\x1b[2A\r\x1b[Jthree\n"


@pytest.mark.usefixtures("_terminal")
def test_a_picture_is_cut_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit._draw("\n".join(["a line that is long"] * 9), 0) == 3
    assert capsys.readouterr().out == "\r\x1b[J" + "a line tha\n" * 3


def test_a_terminal_of_one_line_is_drawn_on_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((10, 1)))
    assert audit._draw("one\ntwo", 0) == 1
    assert capsys.readouterr().out == "\r\x1b[Jone\n"
