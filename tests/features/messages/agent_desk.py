"""Agents with connections that ask the real dispatcher, without a socket."""

from typing import Any

from tests.fakes import Desk, built_in_handlers, starter_files
from tests.listeners import FakePost, Listener

from remit.config.definitions.files import Files
from remit.kernel.dispatch.call import Call
from remit.model.principal import Agent, AgentSpec
from remit_client.wire import Answer, Request


class Line(Listener):
    """A connection that can also ask."""

    def __init__(self, agents: "AgentDesk", name: str) -> None:
        super().__init__(name)
        self._agents = agents

    async def answer(self, event: str, data: Any = None) -> Answer:
        principal = self._agents.desk.authority.fleet.principal(self.name)
        assert principal is not None
        call = Call(principal, Request(0, event, data), connection=self)
        outcome = self._agents.desk.dispatcher.submit(call)
        return outcome if isinstance(outcome, Answer) else await outcome.run()

    async def ask(self, event: str, data: Any = None) -> Any:
        answer = await self.answer(event, data)
        assert answer.error is None, answer.error
        return answer.data

    async def refused(self, event: str, data: Any = None) -> str:
        """The code of an answer that must be a failure."""
        answer = await self.answer(event, data)
        assert answer.error is not None, answer.data
        return answer.error.code


class AgentDesk:
    """A desk whose callers can be pushed to."""

    def __init__(self, files: Files | None = None) -> None:
        self.desk = Desk(built_in_handlers(), files or starter_files())
        self.delivery = self.desk.kernel.delivery
        self.post = self.delivery.post = FakePost()

    def line(self, name: str, profile: str = "communicator", parent: str | None = None) -> Line:
        """A connection of an agent, which is there from now on."""
        if name != "operator" and name not in self.desk.authority.fleet:
            spec = AgentSpec(profile=profile)
            agent = Agent(id=name, parent=parent, public_key=f"key of {name}", spec=spec)
            self.desk.authority.fleet.add(agent)
        line = Line(self, name)
        self.post.listeners.append(line)
        return line

    def hang_up(self, line: Line) -> None:
        line.gone = True
        self.delivery.bus.drop(line)
