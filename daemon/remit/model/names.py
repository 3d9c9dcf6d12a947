"""Event names, checked once where they enter."""

import re
from typing import NewType

from remit.errors import InvalidNameError

EventName = NewType("EventName", str)

SEGMENT = r"[a-z0-9][a-z0-9_.-]*"
_NAME = re.compile(rf"[a-z][a-z0-9_]*(:{SEGMENT})+")

NAME_LIMIT = 200


def parse_event_name(text: str) -> EventName:
    """Accept `text` as an event name.

    Raises:
        InvalidNameError: `text` is not two or more lowercase segments joined by colons.
    """
    if len(text) > NAME_LIMIT or not _NAME.fullmatch(text):
        raise InvalidNameError(text)
    return EventName(text)
