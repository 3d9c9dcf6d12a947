"""Every contract test runs on every store."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.contract.stores import KINDS, make_store

from remit.app.store import Store


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Store]:
    async with make_store(request.param, str(tmp_path)) as opened:
        yield opened
