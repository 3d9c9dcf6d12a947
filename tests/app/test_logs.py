"""A log that cannot be written harms nobody."""

import os
from pathlib import Path

import pytest

from remit.app.logs import Lines

FULL = Path("/dev/full")


def test_a_line_is_written_whole_and_at_once(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as stream:
        lines = Lines(stream)
        lines.write("ünd \udc80\n")
        assert (tmp_path / "log").read_text() == "ünd \\udc80\n"
        assert lines.dropped == 0


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_a_line_for_which_there_is_no_room_is_dropped_and_counted() -> None:
    with FULL.open("w") as stream:
        lines = Lines(stream)
        lines.write("lost\n")
        lines.flush()
        assert lines.dropped == 1


def test_a_line_into_a_closed_pipe_is_dropped() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        lines = Lines(stream)
        lines.write("lost\n")
        assert lines.dropped == 1
