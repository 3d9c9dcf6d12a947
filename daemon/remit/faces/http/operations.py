"""The table of routes: each is the translation of one event.

Routing, the document of this API and the reference page all come from here.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from litestar import Response

from remit.faces.http.body import AnyRequest
from remit.faces.http.problems import problem

COMMON = (400, 401, 403, 404, 409, 413, 422, 429, 500, 502, 503, 504)
"""What any event may answer instead."""

Serve = Callable[[AnyRequest], Awaitable[Response[Any]]]


class Query(msgspec.Struct, frozen=True):
    """A parameter behind the question mark."""

    name: str
    schema: dict[str, Any]
    text: str


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one path."""

    method: str
    path: str
    name: str
    summary: str
    serve: Serve
    event: str = ""
    """What it calls; empty for what is told to everybody."""
    body: Any = None
    answer: Any = None
    """A type, or a media type when the answer is no JSON."""
    status: int = 200
    problems: tuple[int, ...] = COMMON
    query: tuple[Query, ...] = ()
    is_tagged: bool = False
    """Whether its answers have an ETag."""

    @property
    def parameters(self) -> list[str]:
        """The names in braces."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]


PAGE = (
    Query("limit", {"type": "integer", "minimum": 1, "maximum": 1000}, "how many at the most"),
    Query("after", {"type": "string"}, "the `next` of the page before"),
)


# What stands behind the question mark, as request data.


_LONGEST_NUMBER = 18


def page_of(request: AnyRequest) -> dict[str, Any]:
    """The parameters of a list; the event says which of them there are."""
    data: dict[str, Any] = {}
    for name, values in request.query_params.dict().items():
        if len(values) > 1:
            raise problem("invalid_data", f"{name!r} is given twice", path=f"$.{name}")
        data[name] = _number(values[0]) if name == "limit" else values[0]
    return data


def _number(text: str) -> int | str:
    """A number; another text is left for the event to refuse."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER
    return int(text) if is_number else text
