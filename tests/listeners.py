"""Connections without a socket, and a post that hands them what they are sent."""

from typing import Any

from remit.model.event import Notice


class Listener:
    """One connection of a principal; `heard` is what reached it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.heard: list[Notice] = []
        self.gone = False

    @property
    def events(self) -> list[tuple[str, Any]]:
        return [(notice.event, notice.data) for notice in self.heard]


class FakePost:
    """Keeps the contract of a face: it never waits, and a closed connection gets nothing."""

    def __init__(self, *listeners: Listener) -> None:
        self.listeners = list(listeners)

    def deliver(self, connection: Any, notice: Notice) -> bool:
        if not connection.gone:
            connection.heard.append(notice)
        return not connection.gone

    def tell(self, name: str, notice: Notice) -> int:
        return sum(self.deliver(one, notice) for one in self.listeners if one.name == name)
