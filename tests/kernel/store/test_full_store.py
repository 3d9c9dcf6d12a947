"""A store that cannot be written keeps nobody's rights alive."""

from typing import Any

import pytest
from tests.fakes import Desk, built_in_handlers, starter_files
from tests.stores import TemporaryStore

from remit.errors import StoreError
from remit.faces.http.endpoints import probes_of
from remit.model.principal import Agent, AgentSpec
from remit_client.keys import new_key


class FillingStore(TemporaryStore):
    """Takes every write until it is full."""

    full = False

    async def audit_append(self, *arguments: Any, **options: Any) -> Any:
        self._check()
        return await super().audit_append(*arguments, **options)

    async def key_revoke(self, name: str) -> Any:
        self._check()
        return await super().key_revoke(name)

    async def agent_remove(self, agents: Any) -> int:
        self._check()
        return await super().agent_remove(agents)

    def _check(self) -> None:
        if self.full:
            raise StoreError("no space left")


@pytest.fixture
def store() -> FillingStore:
    return FillingStore()


@pytest.fixture
def desk(store: FillingStore) -> Desk:
    return Desk(built_in_handlers(), starter_files(), store=store)


async def test_a_key_is_revoked_in_force_and_the_answer_says_that_it_is_not_kept(
    desk: Desk, store: FillingStore
) -> None:
    key = new_key("eve").public_key
    await desk.ask("operator", "key:add", {"name": "eve", "public_key": key, "profile": "minimal"})
    store.full = True
    answer = await desk.answer("operator", "key:revoke", {"name": "eve"})
    assert answer.error is not None
    assert answer.error.code == "store_unavailable"
    assert "in force" in answer.error.message
    assert desk.keyring.name_of_key(key) is None
    assert desk.keyring.principal("eve") is None
    taken = {"name": "eve", "public_key": new_key("eve").public_key, "profile": "minimal"}
    assert not (await desk.answer("operator", "key:add", taken)).ok


async def test_what_could_not_be_kept_is_done_again_when_there_is_room(
    desk: Desk, store: FillingStore
) -> None:
    key = new_key("eve").public_key
    await desk.ask("operator", "key:add", {"name": "eve", "public_key": key, "profile": "minimal"})
    store.full = True
    await desk.answer("operator", "key:revoke", {"name": "eve"})
    store.full = False
    assert (await desk.ask("operator", "key:revoke", {"name": "eve"}))["name"] == "eve"
    assert await store.key_list() == ()
    gone = await desk.answer("operator", "key:revoke", {"name": "eve"})
    assert gone.error is not None
    assert gone.error.code == "not_found"


async def test_an_agent_is_ended_in_force(desk: Desk, store: FillingStore) -> None:
    desk.authority.fleet.add(Agent(id="eve", spec=AgentSpec(profile="minimal")))
    store.full = True
    answer = await desk.answer("operator", "agent:terminate", {"agent_id": "eve"})
    assert answer.error is not None
    assert answer.error.code == "store_unavailable"
    assert desk.authority.fleet.get("eve") is None
    store.full = False
    again = await desk.ask("operator", "agent:terminate", {"agent_id": "eve"})
    assert again["terminated"] == ["eve"]


async def test_what_gives_or_writes_does_not_happen_unaudited(
    desk: Desk, store: FillingStore
) -> None:
    store.full = True
    answer = await desk.answer("operator", "state:set", {"key": "a", "value": 1})
    assert answer.error is not None
    assert answer.error.code == "store_unavailable"
    assert await store.state_get("a") is None


async def test_a_full_disk_is_told_by_health_readiness_and_metrics(
    desk: Desk, store: FillingStore
) -> None:
    assert (await desk.ask("operator", "system:health"))["status"] == "ok"
    store.database._reserve.is_spent = True
    health = await desk.ask("operator", "system:health")
    assert (health["status"], health["disk_full"]) == ("disk_full", True)
    (problem,) = await probes_of(desk.kernel).problems()
    assert "full" in problem
    assert probes_of(desk.kernel).numbers()["disk_full"] == 1
