"""What stands behind the question mark, as request data."""

from typing import Any

from remit.faces.http.body import AnyRequest
from remit.faces.http.problems import problem

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
