"""Daemons for the acceptance tests."""

from collections.abc import Iterator

import pytest
from tests.acceptance.site import Daemon, Site, new_site


@pytest.fixture
def site() -> Iterator[Site]:
    """A folder of its own for a test that starts, edits or breaks a daemon."""
    with new_site() as site:
        yield site


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """One daemon for a whole module, on the starter definitions."""
    with new_site() as site, site.serving() as daemon:
        yield daemon
