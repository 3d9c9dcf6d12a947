"""What a running daemon serves is written down, or its start fails with a sentence."""

from pathlib import Path

import pytest

from remit.config.settings.home import Home
from remit.config.settings.load import load_settings
from remit.config.settings.lock import remember_served
from remit.errors import HomeError


def test_a_home_that_takes_no_file_is_told_by_name(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.served.symlink_to("/dev/full")
    with pytest.raises(HomeError) as caught:
        remember_served(home, load_settings({}, {}, str(tmp_path)), "ipc:///nowhere")
    assert str(home.served) in caught.value.message
    assert "No space left" in caught.value.message
    assert "--home" in caught.value.hint
