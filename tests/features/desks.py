"""A desk with the built-in capabilities, where several agents and sessions can be told apart."""

from typing import Any

from tests.fakes import Desk, built_in_handlers, starter_files, texts

from remit.model.principal import OPERATOR, OPERATOR_ID, Agent, AgentSpec
from remit_client.wire import Answer

HANDBOOK = """
  session_file_system: {description: Files}
  sessions: {description: Sessions}
  spawn_agents: {description: Agents}
  handbook:
    description: A handbook
    mounts:
      - {path: /docs/guide.md, content: "read me\\nthen act\\n"}
      - {path: /docs/notes.md, content: draft, read_only: false}
"""


class Office:
    """Agents with the files of their sessions, behind the real dispatcher."""

    def __init__(self, desk: Desk | None = None) -> None:
        self.desk = desk or Desk(built_in_handlers(), starter_files())

    @classmethod
    def with_handbook(cls) -> "Office":
        profile = "capabilities: {session_file_system: true, sessions: true, handbook: %s}\n"
        files = texts(HANDBOOK, reader=profile % "true", other=profile % "false")
        return cls(Desk(built_in_handlers(), files))

    def hire(self, name: str, *, key: str | None = None, **spec: Any) -> None:
        """Let an agent in; by default an executor with a key of its own."""
        parent = spec.pop("parent", None)
        spec = {"profile": "executor"} | spec
        agent = Agent(
            id=name, parent=parent, public_key=key or f"key-of-{name}", spec=AgentSpec(**spec)
        )
        self.desk.authority.fleet.add(agent)

    async def answer(
        self, who: str, event: str, data: Any = None, session: str | None = None
    ) -> Answer:
        found = self.desk.authority.fleet.principal(who)
        principal = OPERATOR if who == OPERATOR_ID else found
        assert principal is not None
        return await self.desk.dispatcher.dispatch(principal, event, data or {}, session=session)

    async def ask(self, who: str, event: str, data: Any = None, session: str | None = None) -> Any:
        answer = await self.answer(who, event, data, session)
        assert answer.error is None, answer.error
        return answer.data

    async def refused(
        self, who: str, event: str, data: Any = None, session: str | None = None
    ) -> str:
        """The code of an answer that must be an error."""
        answer = await self.answer(who, event, data, session)
        assert answer.error is not None, answer.data
        return answer.error.code

    async def write(self, who: str, path: str, content: str = "x", session: str = "") -> None:
        await self.ask(who, "file:write_file", {"path": path, "content": content}, session or None)

    async def all_paths(self, who: str, session: str = "") -> list[str]:
        """Every file that somebody sees, found by walking as an agent would."""
        found: list[str] = []
        folders = ["/"]
        for folder in folders:
            page = await self.ask(who, "file:list_directory", {"path": folder}, session or None)
            for entry in page["entries"]:
                path = f"{folder.rstrip('/')}/{entry['name']}"
                (folders if entry["is_directory"] else found).append(path)
        return sorted(found)
