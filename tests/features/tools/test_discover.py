"""What there is, told at every level and in every format."""

import pytest
from tests.fakes import Desk, built_in_handlers, starter_files


@pytest.fixture(scope="module")
def desk() -> Desk:
    return Desk(built_in_handlers(), starter_files())


async def test_a_summary_counts_by_namespace(desk: Desk) -> None:
    told = await desk.ask("minimal", "system:discover")
    assert told == {
        "level": "summary",
        "total": 21,
        "revision": 1,
        "namespaces": {
            "agent": 1,
            "awareness": 4,
            "bill": 1,
            "discovery": 4,
            "event": 2,
            "permission": 4,
            "skill": 2,
            "system": 3,
        },
    }


async def test_a_namespace_is_told_in_one_entry_an_event(desk: Desk) -> None:
    asked = {"level": "namespace", "namespace": "state"}
    told = await desk.ask("observer", "system:discover", asked)
    assert told["namespaces"] == {
        "state": [
            {
                "event": "state:get",
                "summary": "Read one value of the shared state.",
                "parameters": ["key"],
            },
            {
                "event": "state:list",
                "summary": "List the shared state by key, a page at a time.",
                "parameters": ["prefix", "limit", "after"],
            },
        ]
    }


async def test_formats_tell_the_same_events_in_fewer_words(desk: Desk) -> None:
    sizes = []
    for form in ("verbose", "compact", "ultra_compact"):
        told = await desk.ask("executor", "system:discover", {"level": "full", "format": form})
        text = repr(told)
        assert all(name.partition(":")[2] in text for name in ("state:delete", "state:list"))
        sizes.append(len(text))
    assert sizes == sorted(sizes, reverse=True)


async def test_the_shortest_format_is_one_line_a_namespace(desk: Desk) -> None:
    asked = {"level": "full", "format": "ultra_compact"}
    told = await desk.ask("minimal", "system:discover", asked)
    assert told["text"].splitlines() == [
        "agent: runtime",
        "awareness: cards inject read select",
        "bill: query",
        "discovery: describe discover stats tools",
        "event: subscribe unsubscribe",
        "permission: changed check check_many explain",
        "skill: list read",
        "system: discover health help",
    ]


@pytest.mark.parametrize(
    ("filters", "total"),
    [
        ({"event": "state:get"}, 1),
        ({"event": "state:set"}, 0),
        ({"module": "remit.features.state.events"}, 2),
        ({"module": "remit.features.agents.keys"}, 0),
        ({"namespace": "state", "event": "system:health"}, 0),
        ({"namespace": "sta"}, 0),
    ],
)
async def test_filters_only_ever_narrow(desk: Desk, filters: dict[str, str], total: int) -> None:
    assert (await desk.ask("observer", "system:discover", filters))["total"] == total


async def test_a_filtered_tool_list_bills_what_it_sends(desk: Desk) -> None:
    everything = {"level": "full", "format": "mcp"}
    whole = await desk.ask("observer", "system:discover", everything)
    part = await desk.ask("observer", "system:discover", everything | {"namespace": "state"})
    assert [tool["name"] for tool in part["tools"]] == ["state_get", "state_list"]
    assert part["tokens"]["sent"] < whole["tokens"]["sent"]
    assert part["tokens"]["full_dump"] == whole["tokens"]["full_dump"]


async def test_help_without_an_event_lists_what_the_caller_has(desk: Desk) -> None:
    told = await desk.ask("minimal", "system:help")
    assert (told["level"], told["total"]) == ("namespace", 21)
