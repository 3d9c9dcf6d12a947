"""A family whose requests may name a session."""

from typing import Any

from tests.fakes import texts
from tests.family import CATALOGUE, PROFILES, Family
from tests.stores import TemporaryStore

from remit.config.definitions.files import Files
from remit_client.wire import Answer, Failure

SESSIONS = """
  sessions: {description: s, event_patterns: ["session:*"], always_included: true}
  asking: {description: a, event_patterns: [system:discover, system:help], always_included: true}
"""


def circle_files(**more: str) -> Files:
    return texts(CATALOGUE + SESSIONS, **(PROFILES | more))


class Circle(Family):
    """`session=` is the field of the request."""

    def __init__(self, files: Files | None = None, store: TemporaryStore | None = None) -> None:
        super().__init__(files or circle_files(), store)

    async def inside(self, who: str, session: str | None, event: str, data: Any = None) -> Answer:
        return await self.dispatcher.dispatch(self.principal(who), event, data, session=session)

    async def told(self, who: str, session: str | None, event: str, data: Any = None) -> Any:
        answer = await self.inside(who, session, event, data)
        assert answer.error is None, answer.error
        return answer.data

    async def error(self, who: str, session: str | None, event: str, data: Any = None) -> Failure:
        answer = await self.inside(who, session, event, data)
        assert answer.error is not None, answer.data
        return answer.error

    def holds(self, who: str, session: str | None = None) -> set[str]:
        return set(self.authority.grant(self.principal(who), session=session).events)

    async def open(self, who: str, session: str, **step: Any) -> Any:
        return await self.ask(who, "session:open", {"session": session} | step)

    async def narrow(self, who: str, session: str, **step: Any) -> Any:
        return await self.ask(who, "session:narrow", {"session": session} | step)

    async def restarted(self) -> "Circle":
        """Another daemon over the same store and files."""
        again = Circle(self.files, self.store)
        await again.keyring.load()
        return again
