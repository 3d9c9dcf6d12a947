"""Every failure has its status."""

from collections.abc import Iterator
from typing import Any

import pytest

from remit.errors import RemitError
from remit.faces.http.responses import STATUS, problem, problem_headers

OURS = {"internal", "invalid_handler", "invalid_settings", "unusable_home"}
"""What no request can cause; it would be a bug, and is a 500."""


def family(kind: type[RemitError]) -> Iterator[type[RemitError]]:
    yield kind
    for one in kind.__subclasses__():
        yield from family(one)


def test_every_code_has_a_status() -> None:
    codes = {kind.code for kind in family(RemitError)}
    assert codes - OURS <= STATUS.keys()
    assert all(400 <= status < 600 for status in STATUS.values())


@pytest.mark.parametrize(
    ("details", "shown"),
    [({"retry_after": 0.2}, "1"), ({"retry_after": 2}, "2"), ({"retry_after": 2.5}, "3")],
)
def test_when_to_come_back_is_told_in_whole_seconds(details: dict[str, Any], shown: str) -> None:
    assert problem_headers(problem("limit_exceeded", "no", **details)) == {"Retry-After": shown}
