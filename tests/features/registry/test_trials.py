"""Trials: what is counted, whose fault counts, what is kept, and what a restart finds."""

import random
import sqlite3
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.fakes import texts
from tests.family import Family
from tests.stores import TemporaryDatabase

from remit.errors import StoreError
from remit.features.registry.store import (
    KEPT,
    OUTCOMES,
    MissionLabel,
    Outcome,
    Trial,
    TrialRows,
    outcome_of,
)
from remit.features.registry.trials import TrialObserver, Trials
from remit.kernel.store.database import Database

CATALOGUE = """
  base:
    description: b
    event_patterns: ["system:*", "math:*", "permission:*"]
    always_included: true
  state: {description: s, event_patterns: ["state:*"]}
  spawn: {description: s, event_patterns: ["agent:*"]}
"""
CORNER = 'capabilities: [state]\nlimits: {state_prefixes: ["team/"]}\n'


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[Database]:
    async with Database(str(tmp_path / "remit.db"), clock=lambda: 0.0) as opened:
        yield opened


@pytest.fixture
def trials(database: Database) -> Trials:
    return Trials(TrialRows(database))


async def reopened(trials: Trials, database: Database) -> Trials:
    await trials.write()
    again = Trials(TrialRows(database))
    await again.load()
    return again


def trial(id_: str = "tool:a", outcome: Outcome = "success", **more: object) -> Trial:
    return Trial(**{"id": id_, "outcome": outcome, "at": 0.0, "by": "ann", "root": "ann"} | more)  # type: ignore[arg-type]


def record(trials: Trials, successes: int, failures: int, **more: object) -> None:
    for outcome, count in (("success", successes), ("failure", failures)):
        for _ in range(count):
            trials.record(trial(outcome=outcome, **more))  # type: ignore[arg-type]


async def test_trials_count_in_all_by_tag_and_by_model_also_after_a_restart(
    trials: Trials, database: Database
) -> None:
    record(trials, 2, 1, tags=("EU", "Salary"), model="Small")
    record(trials, 1, 0, tags=("eu",))
    for one in (trials, await reopened(trials, database)):
        assert (one.score("tool:a").rate, one.score("tool:a").n) == (4 / 6, 4)
        assert one.by_tag("tool:a", "eu").n == 4
        assert one.by_tag("tool:a", "SALARY").rate == 3 / 5
        assert one.by_model("tool:a", "small").n == 3
        assert one.by_tag("tool:a", "unknown").n == 0
        assert one.score("tool:b").rate == 0.5


@pytest.mark.parametrize("outcome", [one for one in OUTCOMES if one not in ("success", "failure")])
async def test_what_is_not_the_fault_of_the_tool_moves_no_rate(
    trials: Trials, database: Database, outcome: Outcome
) -> None:
    record(trials, 1, 0)
    before = trials.score("tool:a")
    trials.record(trial(outcome=outcome, tags=("eu",), model="m"))
    for one in (trials, await reopened(trials, database)):
        assert one.score("tool:a") == before
        assert one.by_tag("tool:a", "eu").n == one.by_model("tool:a", "m").n == 0
        assert getattr(one.total("tool:a"), outcome) == 1


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("", "success"),
        ("internal", "failure"),
        ("timeout", "failure"),
        ("tool_failed", "failure"),
        ("a_code_of_a_plug_in", "failure"),
        ("denied", "denied"),
        ("approval_pending", "denied"),
        ("limit_exceeded", "denied"),
        ("cancelled", "cancelled"),
        ("invalid_data", "bad_arguments"),
        ("not_found", "bad_arguments"),
        ("unavailable", "unreachable"),
        ("store_unavailable", "unreachable"),
    ],
)
def test_the_code_of_an_answer_tells_whose_fault_it_is(code: str, outcome: Outcome) -> None:
    assert outcome_of(code) == outcome


async def test_a_context_in_which_something_seldom_works_is_warned_of(trials: Trials) -> None:
    record(trials, 9, 0, tags=("plain",))
    record(trials, 0, 5, tags=("Quoted_Fields",))
    record(trials, 0, 2, tags=("rare",))
    record(trials, 2, 3, tags=("even",))
    (found,) = trials.warnings()
    assert (found.id, found.message) == ("tool:a", "0 of 5 with tag quoted_fields")
    assert trials.warnings(["QUOTED_FIELDS", "plain"]) == [found]
    assert trials.warnings(["plain", "rare"]) == []
    assert trials.warnings(accept=lambda name: name != "tool:a") == []
    assert trials.warnings(root="bob") == []


async def test_a_tag_is_the_same_in_any_case_and_language(trials: Trials) -> None:
    record(trials, 1, 0, tags=("Straße", "É", "給与"))
    assert [trials.by_tag("tool:a", tag).n for tag in ("STRASSE", "e\u0301", "給与")] == [1, 1, 1]


async def test_a_text_that_has_no_utf8_keeps_nothing_from_being_written(
    trials: Trials, database: Database
) -> None:
    record(trials, 1, 0, tags=("\ud800x",), model="\udfff", diagnosis="\ud800")
    assert (await reopened(trials, database)).score("tool:a").n == 1


async def test_the_latest_trials_can_be_read_newest_first_page_by_page(
    trials: Trials, database: Database
) -> None:
    for number in range(7):
        trials.record(trial(at=float(number), diagnosis=f"d{number}", tags=("B", "a")))
    again = await reopened(trials, database)
    first = await again.history(lambda _: True, 3)
    assert [one.diagnosis for one in first] == ["d6", "d5", "d4"]
    assert first[0].tags == ("a", "b")
    rest = await again.history(lambda one: one.at != 2, 9, before=first[-1].number)
    assert [one.diagnosis for one in rest] == ["d3", "d1", "d0"]
    again.record(trial(diagnosis="later"))
    assert (await again.history(lambda _: True, 1))[0].diagnosis == "later"


async def test_a_clock_that_goes_back_changes_no_order_and_no_count(
    trials: Trials, database: Database
) -> None:
    for at in (5e9, -1.0, 3.0, 0.0):
        trials.record(trial(at=at))
    again = await reopened(trials, database)
    assert [one.at for one in await again.history(lambda _: True, 9)] == [0.0, 3.0, -1.0, 5e9]
    assert again.score("tool:a").n == 4


async def test_of_a_hundred_thousand_trials_the_latest_are_kept_and_all_are_counted(
    trials: Trials, database: Database
) -> None:
    for number in range(100_000):
        trials.record(trial(f"tool:t{number % 100}", root=f"r{number % 10}", by="b"))
        if number % 30_000 == 0:
            await trials.write()
    again = await reopened(trials, database)
    found = await again.history(lambda _: True, 2 * KEPT)
    assert len(found) == KEPT
    assert found[0].number - found[-1].number == KEPT - 1
    assert sum(one.success for one in again.totals()) == 100_000
    assert again.score("tool:t1").n == 20  # one voice: t1 is always used by r1


async def test_what_a_full_disk_refuses_is_written_later(database: Database) -> None:
    store = TemporaryDatabase()
    trials = Trials(TrialRows(store))
    record(trials, 2, 0, tags=("eu",))
    store.refuses = True
    with pytest.raises(StoreError):
        await trials.write()
    record(trials, 0, 1, tags=("eu",))
    store.refuses = False
    again = await reopened(trials, store)
    assert (again.by_tag("tool:a", "eu").successes, again.by_tag("tool:a", "eu").n) == (2, 3)
    assert [one.outcome for one in await again.history(lambda _: True, 9)] == [
        *("failure", "success", "success")
    ]
    assert again.total("tool:a").success == 2


async def test_what_waits_is_written_when_keeping_ends(trials: Trials, database: Database) -> None:
    with anyio.fail_after(5):
        async with trials.keeping():
            record(trials, 1, 1)
    again = Trials(TrialRows(database))
    await again.load()
    assert again.score("tool:a").n == 2


def _execute(query: str, connection: sqlite3.Connection) -> None:
    connection.execute(query).close()


async def test_a_row_that_cannot_be_read_is_left_out(trials: Trials, database: Database) -> None:
    record(trials, 3, 0)
    await trials.write()
    record(trials, 0, 2)
    await trials.write()
    await database.write(partial(_execute, "UPDATE trial SET body = x'93' WHERE last = 3"))
    assert [one.number for one in await trials.history(lambda _: True, 9)] == [5, 4]


async def test_counts_after_a_restart_are_those_before_it(
    trials: Trials, database: Database
) -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    for number in range(3_000):
        one = trial(
            f"tool:{chance.randrange(5)}",
            chance.choice(OUTCOMES),
            root=f"r{chance.randrange(90)}",
            tags=tuple(f"t{chance.randrange(300)}" for _ in range(2)),
            model=chance.choice(["", "m1", "m2"]),
        )
        trials.record(one)
        if number % 500 == 0:
            trials = await reopened(trials, database)
    again = await reopened(trials, database)
    for name in (f"tool:{number}" for number in range(5)):
        assert again.score(name).n == pytest.approx(trials.score(name).n)
        assert again.total(name) == trials.total(name)
        for tag in (f"t{number}" for number in range(300)):
            assert again.by_tag(name, tag).rate == pytest.approx(trials.by_tag(name, tag).rate)


# ---- the observer of the dispatcher ----


@pytest.fixture
async def family() -> Family:
    made = Family(texts(CATALOGUE, worker="capabilities: [state, spawn]\n", corner=CORNER))
    await made.spawn("operator", "ann", "worker")
    await made.spawn("ann", "kid", "worker")
    await made.spawn("operator", "bob", "corner")
    return made


@pytest.fixture
def watched(family: Family) -> Trials:
    trials = Trials(TrialRows(family.store.database))
    fleet = family.authority.fleet
    family.kernel.observers.append(TrialObserver(trials, fleet, family.kernel.wall_clock))
    return trials


async def test_every_call_of_a_tool_is_a_trial(family: Family, watched: Trials) -> None:
    await family.ask("ann", "math:add", {"a": 1, "b": 2})
    await family.ask("kid", "state:set", {"key": "k", "value": 1})
    await family.refused("ann", "math:divide", {"a": 1, "b": 0})
    await family.refused("ann", "math:add", {"a": "x"})
    await family.refused("ann", "state:get", {"key": "absent"})
    found = [(one.id, one.outcome, one.by) for one in await watched.history(lambda _: True, 9)]
    assert found == [
        ("tool:state:get", "bad_arguments", "ann"),
        ("tool:math:add", "bad_arguments", "ann"),
        ("tool:math:divide", "bad_arguments", "ann"),
        ("tool:state:set", "success", "kid"),
        ("tool:math:add", "success", "ann"),
    ]


async def test_questions_about_rights_and_the_system_are_no_trials(
    family: Family, watched: Trials
) -> None:
    await family.ask("ann", "permission:check", {"event": "state:get"})
    await family.ask("ann", "system:health")
    assert watched.totals() == []


async def test_a_call_that_the_door_refuses_never_reached_the_tool(
    family: Family, watched: Trials
) -> None:
    await family.refused("bob", "agent:spawn")
    await family.refused("bob", "no:such_event")
    assert watched.totals() == []


async def test_a_call_that_a_limit_of_the_caller_forbids_is_a_denial(
    family: Family, watched: Trials
) -> None:
    await family.refused("bob", "state:set", {"key": "k", "value": 1})
    total = watched.total("tool:state:set")
    assert (total.denied, total.recent) == (1, "")


async def test_a_cancelled_call_is_no_failure_of_the_tool(family: Family, watched: Trials) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await family.answer("operator", "state:get", {"key": "k"})
    total = watched.total("tool:state:get")
    assert (total.cancelled, total.failure, total.success) == (1, 0, 0)


async def test_a_tree_of_agents_is_one_voice(family: Family, watched: Trials) -> None:
    for _ in range(30):
        await family.ask("kid", "math:add", {"a": 1, "b": 2})
        await family.ask("ann", "math:add", {"a": 1, "b": 2})
    assert watched.score("tool:math:add").n == pytest.approx(20)
    total = watched.total("tool:math:add")
    assert (total.success, total.recent, total.timed) == (60, "s" * 10, 0)
    assert watched.calls("tool:math:add") == (60, (True,) * 10)


async def test_what_is_reported_says_nothing_about_calls(trials: Trials) -> None:
    record(trials, 0, 9)
    assert trials.calls("tool:a") == (0, ())


async def test_what_an_agent_did_counts_for_its_tree_also_when_it_has_ended(
    family: Family, watched: Trials
) -> None:
    await family.ask("kid", "math:add", {"a": 1, "b": 2})
    await family.ask("operator", "agent:terminate", {"agent_id": "kid"})
    (found,) = await watched.history(lambda one: one.id == "tool:math:add", 9)
    assert (found.by, found.root) == ("kid", "ann")


async def test_calls_of_a_bound_mission_carry_its_tags_and_model(
    family: Family, watched: Trials
) -> None:
    watched.bind("kid", "", MissionLabel("m-1", ("EU",), "Small"))
    await family.ask("kid", "math:add", {"a": 1, "b": 2})
    await family.ask("ann", "math:add", {"a": 1, "b": 2})
    watched.release("kid")
    await family.ask("kid", "math:add", {"a": 1, "b": 2})
    score = watched.by_tag("tool:math:add", "eu")
    assert (score.n, watched.by_model("tool:math:add", "small").n) == (1, 1)
    found = [one.mission for one in await watched.history(lambda _: True, 9)]
    assert found == ["", "", "m-1"]


async def test_whoever_listens_is_told_what_has_changed(family: Family, watched: Trials) -> None:
    told: list[str] = []
    watched.listeners.append(told.extend)
    await family.ask("ann", "math:add", {"a": 1, "b": 2})
    watched.score("tool:math:add")
    assert told == ["tool:math:add"]
