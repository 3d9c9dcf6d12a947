"""Parts from outside, and a daemon that they are played against."""

from collections.abc import Iterator

import pytest
from tests.acceptance.site import Daemon
from tests.outside.conformance_site import conformance_daemon
from tests.outside.parts import Outside, find_outside


@pytest.fixture(scope="session")
def outside() -> Outside:
    """Node, the packages of npm and the servers of PyPI."""
    return find_outside()


@pytest.fixture(scope="session")
def conformance(outside: Outside) -> Iterator[Daemon]:
    """One daemon with the tools of the conformance suite, for all who want these."""
    with conformance_daemon() as daemon:
        yield daemon
