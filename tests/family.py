"""A desk with agents that spawn each other, for tests of delegation."""

from typing import Any

import zmq
from tests.fakes import Desk, built_in_handlers, texts
from tests.stores import TemporaryStore

from remit.config.definitions.files import Files
from remit.model.principal import Principal
from remit_client.wire import Answer

CATALOGUE = """
  base: {description: b, event_patterns: [system:health, "permission:*"], always_included: true}
  read: {description: r, event_patterns: [state:get, state:list]}
  write: {description: w, event_patterns: [state:set, state:delete], requires: [read]}
  talk: {description: t, event_patterns: [agent:send_message, message:direct]}
  web: {description: n, event_patterns: [system:stats], claude_tools: [WebFetch]}
  spawn:
    description: s
    event_patterns: [agent:spawn, agent:terminate, agent:update, agent:list, agent:status]
"""
PROFILES = {
    "boss": "capabilities: [write, talk, web, spawn]\n",
    "lead": "capabilities: [write, talk, spawn]\nlimits: {max_children: 2, max_depth: 2}\n",
    "helper": "capabilities: [read, talk]\n",
    "writer": "capabilities: [write]\n",
    "mute": "capabilities: [spawn, read]\n",
    "slow": "capabilities: [read]\nlimits: {max_calls_per_minute: 3}\n",
    "corner": 'capabilities: [write, spawn]\nlimits: {state_prefixes: ["team/a/", "shared/"]}\n',
}


def family_files(**more: str) -> Files:
    return texts(CATALOGUE, **(PROFILES | more))


def public_key() -> str:
    return zmq.curve_keypair()[0].decode()


class Family(Desk):
    """Agents are asked by name, as their connection would name them."""

    def __init__(self, files: Files | None = None, store: TemporaryStore | None = None) -> None:
        super().__init__(built_in_handlers(), files or family_files(), store=store)

    def principal(self, who: str) -> Principal:
        found = self.authority.fleet.principal(who)
        return found or Principal(who)

    async def client(self, name: str, profile: str) -> None:
        await self.keyring.add(name, public_key(), profile)

    async def spawn(self, who: str, agent_id: str, profile: str = "", **more: Any) -> Any:
        data = {"agent_id": agent_id, "public_key": public_key()} | more
        return await self.ask(who, "agent:spawn", data | ({"profile": profile} if profile else {}))

    async def refused(self, who: str, event: str, data: Any = None) -> tuple[str, dict[str, Any]]:
        answer: Answer = await self.answer(who, event, data)
        assert answer.error is not None, answer.data
        return answer.error.code, answer.error.details

    async def allowed(self, who: str, event: str) -> bool:
        return event in self.authority.grant(self.principal(who)).events
