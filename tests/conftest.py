"""What every test may rely on."""

import ctypes
import gc
import os
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from tests.rows import make_store
from tests.stores import SqliteStore, TemporaryDatabase

ROOT = Path(__file__).resolve().parents[1]

# No deadline: a slow machine is not a failure. In CI the same commit must give the same result.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "local")

_STATM = Path("/proc/self/statm")
_ROOM = 100 * 2**20
_kept = [0]


def pytest_runtest_logfinish() -> None:
    """Keep a run small: four workers do not find a gigabyte each on every machine.

    A test builds megabytes in few objects, which Python collects late, and in small pieces of
    native memory, which the C library keeps.
    """
    if _STATM.exists() and _resident() - _kept[0] > _ROOM:
        gc.collect()
        if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
            libc.malloc_trim(0)
        _kept[0] = _resident()


def _resident() -> int:
    return int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """asyncio only: pyzmq's authenticator needs it."""
    return "asyncio"


@pytest.fixture(autouse=True)
def close_stores() -> Iterator[None]:
    """No test leaves a store open."""
    yield
    TemporaryDatabase.close_all()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    """An open store whose clock stands still at `tests.rows.NOW`."""
    async with make_store(str(tmp_path)) as opened:
        yield opened


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real-world data beside the checkout, which not every machine has."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no shared/data folder beside the checkout")
    return folder
