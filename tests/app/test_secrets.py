"""The keys of an installation are made at the first start and kept."""

from pathlib import Path

import pytest

from remit.app.daemon import first_keys
from remit.config.settings.home import Home, prepare_home
from remit.errors import HomeError


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    prepare_home(home)
    return home


def test_missing_keys_are_made_readable_for_their_owner_only(home: Home) -> None:
    keys = first_keys(home)
    assert home.server_public_key.read_text().strip() == keys.server_public
    assert keys.server_secret not in home.server_public_key.read_text()
    for path in (home.server_key, home.operator_key):
        assert path.stat().st_mode & 0o777 == 0o600


def test_keys_stay_the_same(home: Home) -> None:
    assert first_keys(home) == first_keys(home)


def test_a_lost_public_half_is_made_again(home: Home) -> None:
    keys = first_keys(home)
    home.server_public_key.unlink()
    assert first_keys(home) == keys
    assert home.server_public_key.exists()


def test_a_public_key_of_somebody_else_is_refused_with_the_repair(home: Home) -> None:
    first_keys(home)
    home.server_public_key.write_text("x" * 40)
    with pytest.raises(HomeError) as caught:
        first_keys(home)
    assert str(home.server_public_key) in caught.value.hint
