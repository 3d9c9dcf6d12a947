"""The tools without memory: time, calculator, weather and task list."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes import built_in_handlers
from tests.features.desks import Office

from remit.model.event import make_universe
from remit.policy.tool_names import tool_names


@pytest.fixture
def office() -> Office:
    office = Office()
    office.hire("ann", profile="tester")
    return office


def test_the_tool_of_a_built_in_is_called_like_the_end_of_its_event() -> None:
    names = tool_names(make_universe(h.spec for h in built_in_handlers().values()))
    for event, name in names.items():
        if event.partition(":")[0] in {"time", "math", "weather", "file", "todo"}:
            assert name == event.partition(":")[2]


# ---- time ----


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, "2023-11-14T22:13:20+00:00"),
        ({"timezone": "Asia/Tokyo"}, "2023-11-15T07:13:20+09:00"),
        ({"format": "unix"}, 1_700_000_000),
        ({"timezone": "Asia/Tokyo", "format": "unix"}, 1_700_000_000),
        (
            {"timezone": "America/New_York", "format": "human"},
            "Tuesday, 14 November 2023, 17:13:20 EST (UTC-0500)",
        ),
    ],
)
async def test_the_time_is_told_in_each_zone_and_format(
    office: Office, data: dict[str, str], expected: object
) -> None:
    office.desk.kernel.wall_clock = lambda: 1_700_000_000.9
    answered = await office.ask("ann", "time:get_current_time", data)
    assert answered == {
        "timestamp": expected,
        "timezone": data.get("timezone", "UTC"),
        "format": data.get("format", "iso8601"),
    }


@pytest.mark.parametrize(
    ("zone", "hint"),
    [
        ("Europe/Berln", "did you mean 'Europe/Berlin'?"),
        ("europe/berlin", "did you mean 'Europe/Berlin'?"),
        ("../../etc/passwd", ""),
        ("/etc/localtime", ""),
        ("Europe", ""),
        ("UTC\0", ""),
        ("\ud800", ""),
    ],
)
async def test_an_unknown_zone_is_refused_with_the_nearest_name(
    office: Office, zone: str, hint: str
) -> None:
    answer = await office.answer("ann", "time:get_current_time", {"timezone": zone})
    assert answer.error is not None
    assert answer.error.code == "invalid_data"
    assert answer.error.details == {"path": "$.timezone"}
    assert hint in answer.error.hint
    assert answer.error.hint


# ---- math ----


@pytest.mark.parametrize(
    ("event", "a", "b", "result"),
    [
        ("math:add", 2, 3, 5),
        ("math:add", 2**53, 1, 2**53 + 1),
        ("math:subtract", 2, 3.5, -1.5),
        ("math:multiply", 2**40, 2**40, float(2**80)),
        ("math:divide", 7, 2, 3.5),
        ("math:divide", 0, 5, 0.0),
    ],
)
async def test_numbers_are_calculated_with(
    office: Office, event: str, a: float, b: float, result: float
) -> None:
    assert await office.ask("ann", event, {"a": a, "b": b}) == {"result": result}


@pytest.mark.parametrize(
    ("event", "a", "b"),
    [
        ("math:divide", 1, 0),
        ("math:divide", 1, -0.0),
        ("math:add", math.nan, 1),
        ("math:add", math.inf, -math.inf),
        ("math:multiply", 1e308, 10),
        ("math:divide", 1e308, 1e-10),
        ("math:add", 10**400, 1),
        ("math:multiply", True, 1),
        ("math:add", "1", 1),
    ],
)
async def test_what_has_no_result_is_an_error(
    office: Office, event: str, a: object, b: object
) -> None:
    assert await office.refused("ann", event, {"a": a, "b": b}) == "invalid_data"


NUMBERS = st.integers() | st.floats()


@given(event=st.sampled_from(["add", "subtract", "multiply", "divide"]), a=NUMBERS, b=NUMBERS)
async def test_no_numbers_get_more_than_a_finite_result_or_a_typed_error(
    event: str, a: float, b: float
) -> None:
    office = Office()
    office.hire("ann", profile="tester")
    answer = await office.answer("ann", f"math:{event}", {"a": a, "b": b})
    if answer.error is None:
        assert math.isfinite(answer.data["result"])
    else:
        assert answer.error.code == "invalid_data"


# ---- weather ----


async def test_the_weather_of_a_place_is_always_the_same_however_it_is_written(
    office: Office,
) -> None:
    first = await office.ask("ann", "weather:get_weather", {"city": "New York"})
    again = await office.ask("ann", "weather:get_weather", {"city": " new  YORK "})
    assert first | {"city": ""} == again | {"city": ""}
    assert first["is_mock"] is True
    others = [await office.ask("ann", "weather:get_weather", {"city": c}) for c in "abcdefgh"]
    assert len({(one["temperature_c"], one["condition"]) for one in others}) > 1


async def test_a_longer_forecast_begins_like_a_shorter_one(office: Office) -> None:
    short = await office.ask("ann", "weather:get_forecast", {"city": "Rome", "days": 2})
    long = await office.ask("ann", "weather:get_forecast", {"city": "Rome", "days": 14})
    assert long["days"][:2] == short["days"]
    assert [day["day"] for day in long["days"]] == list(range(14))
    assert all(day["low_c"] < day["high_c"] for day in long["days"])


@pytest.mark.parametrize(
    "data", [{"city": ""}, {"city": " "}, {"city": "x", "days": 0}, {"city": "x", "days": 15}]
)
async def test_a_forecast_for_nowhere_or_never_is_refused(
    office: Office, data: dict[str, Any]
) -> None:
    assert await office.refused("ann", "weather:get_forecast", data) == "invalid_data"


# ---- tasks ----


def todo(status: str, content: str = "Run the tests") -> dict[str, str]:
    return {"content": content, "activeForm": "Running the tests", "status": status}


@pytest.mark.parametrize(
    ("statuses", "warned"),
    [
        ([], ""),
        (["completed"], ""),
        (["pending", "in_progress", "completed"], ""),
        (["pending", "completed"], "none is in progress"),
        (["in_progress", "in_progress"], "2 tasks are in progress"),
        (["in_progress", "in_progress", "pending"], "2 tasks are in progress"),
    ],
)
async def test_a_list_comes_back_counted_and_with_a_warning_where_one_is_due(
    office: Office, statuses: list[str], warned: str
) -> None:
    todos = [todo(status) for status in statuses]
    answer = await office.answer("ann", "todo:write_todos", {"todos": todos})
    assert answer.error is None
    counts = {name: statuses.count(name) for name in ("pending", "in_progress", "completed")}
    assert answer.data["counts"] == {"total": len(todos), **counts}
    assert len(answer.data["warnings"]) == (1 if warned else 0)
    assert warned in "".join(answer.data["warnings"])


async def test_tasks_travel_under_the_names_they_came_with(office: Office) -> None:
    import msgspec  # noqa: PLC0415 - only here

    answered = await office.ask("ann", "todo:write_todos", {"todos": [todo("pending")]})
    assert msgspec.to_builtins(answered)["todos"] == [todo("pending")]
    assert answered["success"] is True


@pytest.mark.parametrize(
    "wrong",
    [
        todo("done"),
        todo("pending", ""),
        todo("pending", " \t"),
        todo("pending", "x" * 1001),
        todo("pending") | {"priority": "high"},
        {"content": "x", "status": "pending"},
        {"content": "x", "active_form": "y", "status": "pending"},
        "Run the tests",
    ],
)
async def test_a_task_that_is_none_is_refused(office: Office, wrong: object) -> None:
    data = {"todos": [todo("pending"), wrong]}
    answer = await office.answer("ann", "todo:write_todos", data)
    assert answer.error is not None
    assert answer.error.code == "invalid_data"
    assert "todos[1]" in answer.error.details["path"] or "todos" in answer.error.details["path"]


@pytest.mark.parametrize("count", [201, 10_000])
async def test_a_list_that_nobody_could_work_off_is_too_large(office: Office, count: int) -> None:
    todos = [todo("pending")] * count
    answer = await office.answer("ann", "todo:write_todos", {"todos": todos})
    assert answer.error is not None
    assert answer.error.code == "too_large"
    assert answer.error.details == {"limit": 200, "size": count}
    assert answer.error.hint


async def test_writing_tasks_leaves_nothing_behind(office: Office) -> None:
    await office.ask("ann", "todo:write_todos", {"todos": []})
    rows = await office.desk.store.audit_query()
    assert rows.items == ()
