"""The token bill: whatever is put before a model is on it, and nobody reads another's."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.fakes import texts
from tests.family import Family
from tests.stores import TemporaryStore

from remit.errors import StoreError
from remit.kernel.dispatch.bills import DAYS, BillBounds, BillDay, Bills, BillTurn
from remit.kernel.dispatch.call import Call
from remit.model.descriptor import META_TOOL
from remit_client.wire import Request

CATALOGUE = """
  base:
    description: Feet
    event_patterns: ["system:*", agent:runtime, bill:query, "discovery:*", "awareness:*"]
    always_included: true
  read: {description: Read state, event_patterns: [state:get, state:list], system_prompt: Read on.}
  spawn: {description: Make children, event_patterns: [agent:spawn, agent:status]}
"""
PROFILES = {"clerk": "capabilities: [read]\n", "boss": "capabilities: [read, spawn]\n"}


@pytest.fixture
async def family() -> Family:
    made = Family(texts(CATALOGUE, **PROFILES))
    await made.spawn("operator", "ann", "clerk")
    await made.spawn("operator", "bob", "boss")
    return made


async def bill(family: Family, who: str = "ann", **asked: Any) -> Any:
    (item,) = (await family.ask(who, "bill:query", asked))["items"]
    return item


async def kinds(family: Family, who: str = "ann") -> dict[str, tuple[int, int]]:
    found = (await bill(family, who))["kinds"]
    return {kind: (one["count"], one["sent"]) for kind, one in found.items()}


async def test_lists_searches_details_and_prompts_are_on_it(family: Family) -> None:
    listed = await family.ask("ann", "system:discover", {"format": "mcp", "level": "full"})
    sent = listed["tokens"]["sent"]
    assert await kinds(family) == {"lists": (1, sent)}
    found = await family.ask("ann", "discovery:discover", {"query": "read the state"})
    assert (await kinds(family))["searches"] == (1, found["tokens"]["total"])
    told = await family.ask("ann", "discovery:describe", {"id": "state:get", "render": True})
    assert told["prompt"]
    await family.ask("ann", "system:help", {"event": "state:get"})
    assert (await kinds(family))["details"][0] == 2
    run = (await family.ask("ann", "agent:runtime"))["tokens"]
    found_kinds = await kinds(family)
    assert found_kinds["prompts"] == (1, run["system_prompt"])
    assert found_kinds["lists"] == (2, sent + run["tools"])
    whole = await bill(family)
    assert whole["sent"] == sum(sent for _, sent in found_kinds.values())
    shown = await family.ask("operator", "agent:status", {"agent_id": "ann"})
    assert shown["bill"]["sent"] == whole["sent"]


async def test_a_turn_is_all_that_is_shown_for_one_request(family: Family) -> None:
    await family.ask("ann", "system:discover", {"format": "mcp"})
    first = await family.ask("ann", "discovery:discover", {"query": "read the state"})
    await family.ask("ann", "discovery:describe", {"id": "state:get"})
    second = await family.ask("ann", "discovery:discover", {"query": "read the state"})
    found = await bill(family)
    assert found["turns"] == 2
    new, old = found["latest"]
    assert new["kinds"] == {"searches": second["tokens"]["total"]}
    assert set(old["kinds"]) == {"lists", "searches", "details"}
    assert old["kinds"]["searches"] == first["tokens"]["total"]
    assert new["sent"] + old["sent"] == found["sent"]
    assert found["full_dump"] == new["full_dump"] + old["full_dump"]
    assert found["full_dump"] > found["kinds"]["searches"]["sent"]
    (day,) = found["days"]
    assert (day["day"], day["turns"], day["sent"]) == ("1970-01-01", 2, found["sent"])


async def test_the_list_of_a_host_counts_and_a_look_at_it_does_not(family: Family) -> None:
    principal = family.principal("ann")

    async def ask(data: Any) -> Any:
        outcome = family.dispatcher.submit(Call(principal, Request(0, "self/tools", data)))
        answer = await outcome.run()  # type: ignore[union-attr]
        assert answer.error is None, answer.error
        return answer.data

    await ask(None)
    assert (await family.ask("ann", "bill:query"))["items"][0]["sent"] == 0
    told = await ask({"listed": True, "found": []})
    count, sent = (await kinds(family))["lists"]
    assert count == 1
    assert sent > told["tokens"]["sent"], f"{META_TOOL} is put before the model as well"


async def test_what_is_asked_about_somebody_else_is_nobodys_turn(family: Family) -> None:
    await family.ask("operator", "discovery:discover", {"query": "state", "agent": "ann"})
    await family.ask("operator", "agent:runtime", {"agent_id": "ann"})
    everybody = (await family.ask("operator", "bill:query"))["items"]
    assert everybody == []


async def test_an_agent_reads_its_own_and_no_other(family: Family) -> None:
    await family.ask("ann", "system:discover", {"format": "mcp"})
    for name in ("ann", "nobody"):
        code, _ = await family.refused("bob", "bill:query", {"agent": name})
        assert code == "unknown_agent"
    assert (await bill(family, "bob"))["agent"] == "bob"
    told = await family.ask("operator", "bill:query")
    assert [(one["agent"], one["turns"]) for one in told["items"]] == [("ann", 1)]
    assert "days" not in told["items"][0]
    assert (await bill(family, "operator", agent="ann"))["days"]
    code, _ = await family.refused("operator", "bill:query", {"agent": "nobody"})
    assert code == "unknown_agent"


async def test_it_outlives_the_agent_and_a_restart_but_not_a_newcomer(family: Family) -> None:
    await family.ask("ann", "system:discover", {"format": "mcp"})
    before = await bill(family)
    await family.ask("operator", "agent:terminate", {"agent_id": "ann"})
    again = Family(texts(CATALOGUE, **PROFILES), family.store)
    assert (await bill(again, "operator", agent="ann"))["sent"] == before["sent"]
    await family.spawn("operator", "ann", "clerk")
    assert (await bill(family, "operator", agent="ann"))["sent"] == 0


async def test_days_before_the_question_and_those_that_are_too_old_are_left_out(
    family: Family,
) -> None:
    today = 100
    family.kernel.bills._clock = lambda: today * 86_400.0 + 5
    bounds = BillBounds(first_day=0, first_turn=0, turns_of_one=9, rows=99)
    days = [BillDay("ann", day, "lists", 1, day, 0) for day in (today - DAYS, today - DAYS + 1, 95)]
    await family.store.bill_add(days, [], bounds)
    assert (await bill(family))["sent"] == today - DAYS + 1 + 95
    assert (await bill(family, since=93 * 86_400.0 + 100))["sent"] == 95
    assert (await family.ask("ann", "bill:query", {"since": 0.0}))["since"] == 71 * 86_400
    await family.ask("ann", "system:discover", {"format": "mcp"})
    await family.kernel.bills.write()
    assert [one.day for one in await family.store.bill_days("ann", 0)] == [
        71,
        95,
        100,
        100,
    ]


class FullStore(TemporaryStore):
    """A store whose disk is full now and then."""

    is_full = False

    async def bill_add(
        self, days: Sequence[BillDay], turns: Sequence[BillTurn], bounds: BillBounds
    ) -> None:
        if self.is_full:
            raise StoreError("the disk is full")
        await super().bill_add(days, turns, bounds)


async def test_what_cannot_be_written_waits() -> None:
    store = FullStore()
    bills = Bills(store, lambda: 5.0)
    bills.charge("ann", "lists", 7, 9)
    store.is_full = True
    with pytest.raises(StoreError):
        await bills.write()
    bills.charge("ann", "lists", 1)
    store.is_full = False
    assert await bills.days("ann", 0) == (
        BillDay("ann", 0, "lists", 2, 8, 9),
        BillDay("ann", 0, "turn", 1, 0, 0),
    )
    assert [one.sent for one in await bills.turns("ann", 9)] == [8]
