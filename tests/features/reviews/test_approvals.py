"""The approval gate: exact arguments, once, in time, and by somebody else."""

from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.features.reviews.gated import GatedDesk

from remit.features.reviews.approvals import MAX_PENDING, MAX_WAITING, Approvals

OPEN = "vault:open"


@pytest.fixture
async def desk() -> GatedDesk:
    desk = await GatedDesk().open()
    desk.hire("ann", "gated")
    return desk


async def pending(desk: GatedDesk, data: Any, who: str = "ann", event: str = OPEN) -> str:
    error = await desk.refused(who, event, data)
    assert error.code == "approval_pending", error
    return str(error.details["review"])


async def test_a_gated_call_runs_once_after_its_approval(desk: GatedDesk) -> None:
    review = await pending(desk, {"number": 1})
    assert await pending(desk, {"number": 1}) == review
    assert desk.runs == []
    assert (await desk.decide("operator", review)).ok
    assert await desk.ask("ann", OPEN, {"number": 1}) == 1
    assert await pending(desk, {"number": 1}) != review
    assert desk.runs == [1]


async def test_an_approval_counts_for_exactly_its_arguments(desk: GatedDesk) -> None:
    await desk.decide("operator", await pending(desk, {"number": 1, "why": "a"}))
    for other in (
        {"number": 2, "why": "a"},
        {"number": 1},
        {"number": 1, "why": "b"},
        {"number": 1, "why": ["a"]},
    ):
        await pending(desk, other)
    assert desk.runs == []
    assert await desk.ask("ann", OPEN, {"why": "a", "number": 1}) == 1


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=2), inside),
    max_leaves=5,
)


@given(VALUES, VALUES)
@settings(max_examples=60)
def test_no_argument_passes_for_another(one: Any, other: Any) -> None:
    async def check() -> None:
        desk = await GatedDesk().open()
        desk.hire("ann", "gated")
        await desk.decide("operator", await pending(desk, {"number": 1, "why": one}))
        answer = await desk.answer("ann", OPEN, {"number": 1, "why": other})
        assert answer.ok == (_exact(one) == _exact(other))

    anyio.run(check)


def _exact(value: Any) -> str:
    if isinstance(value, dict):
        return f"dict {sorted((key, _exact(inside)) for key, inside in value.items())}"
    if isinstance(value, list):
        return repr([_exact(inside) for inside in value])
    return repr(value)


async def test_an_approval_is_not_for_another_agent_or_a_later_one_of_that_name(
    desk: GatedDesk,
) -> None:
    desk.hire("bob", "gated")
    await desk.decide("operator", await pending(desk, {"number": 1}))
    await pending(desk, {"number": 1}, "bob")
    desk.authority.fleet.remove(["ann"])
    desk.hire("ann", "gated", key="another key")
    await pending(desk, {"number": 1})
    assert desk.runs == []


async def test_the_operator_is_never_gated_and_an_old_name_is_no_way_around(
    desk: GatedDesk,
) -> None:
    assert await desk.ask("operator", OPEN, {"number": 7}) == 7
    await pending(desk, {"number": 1}, event="vault:unlock")
    await desk.ask("ann", "vault:look")


@pytest.mark.parametrize("profile", ["child", "mixed"])
async def test_no_profile_undoes_what_it_builds_on(desk: GatedDesk, profile: str) -> None:
    desk.hire("bob", profile)
    await pending(desk, {"number": 1}, "bob")


async def test_an_agent_does_not_escape_through_a_child_with_a_free_profile(
    desk: GatedDesk,
) -> None:
    desk.hire("kid", "free", parent="ann")
    await pending(desk, {"number": 1}, "kid")


async def test_a_handler_can_demand_approval_of_everybody(desk: GatedDesk) -> None:
    desk.hire("pia", "pilot")
    review = await pending(desk, None, "pia", "rocket:launch")
    await desk.decide("operator", review)
    assert await desk.ask("pia", "rocket:launch") == "gone"


async def test_a_rejection_is_a_denial_with_its_note_and_stands_for_a_while(
    desk: GatedDesk,
) -> None:
    review = await pending(desk, {"number": 1})
    await desk.decide("operator", review, "reject", "not today")
    for _ in range(2):
        error = await desk.refused("ann", OPEN, {"number": 1})
        assert error.code == "denied"
        assert error.details == {
            "reason": "explicit_deny",
            "review": review,
            "event": OPEN,
            "note": "not today",
        }
    desk.now += 301
    assert await pending(desk, {"number": 1}) != review


async def test_what_nobody_decides_in_time_is_refused_and_cannot_be_approved(
    desk: GatedDesk,
) -> None:
    review = await pending(desk, {"number": 1})
    desk.now += 301
    late = await desk.decide("operator", review)
    assert late.error is not None
    assert late.error.code == "conflict"
    error = await desk.refused("ann", OPEN, {"number": 1})
    assert (error.code, error.details["note"]) == ("denied", "timed out")
    assert await pending(desk, {"number": 1}) != review


async def test_an_approval_that_is_not_used_lapses(desk: GatedDesk) -> None:
    review = await pending(desk, {"number": 1})
    await desk.decide("operator", review)
    desk.now += 301
    assert await pending(desk, {"number": 1}) != review


async def test_a_clock_that_is_set_back_gives_no_approval_more_time(desk: GatedDesk) -> None:
    request = await pending(desk, {"number": 1})
    await desk.decide("operator", await pending(desk, {"number": 2}))
    desk.now -= 3600
    desk.ticks += 301
    listed = await desk.ask("operator", "review:list", {})
    assert request not in [item["id"] for item in listed["items"]]
    refused = await desk.decide("operator", request)
    assert refused.error is not None
    assert refused.error.code == "conflict"
    await pending(desk, {"number": 2})
    assert desk.runs == []


async def test_an_approval_outlives_a_clock_that_is_set_back(desk: GatedDesk) -> None:
    await desk.decide("operator", await pending(desk, {"number": 1}))
    desk.now -= 3600
    desk.ticks += 299
    assert await desk.ask("ann", OPEN, {"number": 1}) == 1


async def test_a_daemon_does_not_take_over_an_approval_from_the_future(desk: GatedDesk) -> None:
    request = await pending(desk, {"number": 1})
    await desk.decide("operator", await pending(desk, {"number": 2}))
    desk.now -= 3600
    later = await desk.restarted()
    later.hire("ann", "gated")
    assert (await later.decide("operator", request)).error is not None
    await pending(later, {"number": 2})
    assert desk.runs == []


@pytest.mark.parametrize("moment", ["asked", "approved", "used"])
async def test_a_restart_loses_and_repeats_nothing(desk: GatedDesk, moment: str) -> None:
    review = await pending(desk, {"number": 1})
    if moment == "asked":
        desk = await desk.restarted()
        desk.hire("ann", "gated")
        assert await pending(desk, {"number": 1}) == review
    await desk.decide("operator", review)
    if moment == "used":
        assert await desk.ask("ann", OPEN, {"number": 1}) == 1
    desk = await desk.restarted()
    desk.hire("ann", "gated")
    if moment != "used":
        assert await desk.ask("ann", OPEN, {"number": 1}) == 1
    await pending(desk, {"number": 1})
    assert desk.runs == [1]


async def test_waiting_calls_hear_of_the_approval_and_only_one_of_them_runs() -> None:
    desk = await GatedDesk(wait=1.0).open()
    desk.hire("ann", "gated")
    codes: list[str] = []

    async def call() -> None:
        answer = await desk.answer("ann", OPEN, {"number": 1})
        codes.append("ok" if answer.error is None else answer.error.code)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            for _ in range(MAX_WAITING):
                group.start_soon(call)
            while desk.kernel.service(Approvals)._waiting["ann"] < MAX_WAITING:
                await anyio.lowlevel.checkpoint()
            (item,) = (await desk.ask("operator", "review:list", {"kind": "approval"}))["items"]
            await desk.decide("operator", item["id"])
    assert sorted(codes) == ["approval_pending"] * (MAX_WAITING - 1) + ["ok"]
    assert desk.runs == [1]


async def test_two_daemons_cannot_use_one_approval_twice(desk: GatedDesk) -> None:
    # The mark in the store decides, not the memory of one process.
    await desk.decide("operator", await pending(desk, {"number": 1}))
    other = await desk.restarted()
    other.hire("ann", "gated")
    assert (await desk.answer("ann", OPEN, {"number": 1})).ok
    assert not (await other.answer("ann", OPEN, {"number": 1})).ok
    assert desk.runs == [1]


async def test_one_agent_cannot_drown_the_operator(desk: GatedDesk) -> None:
    for number in range(MAX_PENDING):
        await pending(desk, {"number": number})
    error = await desk.refused("ann", OPEN, {"number": -1})
    assert error.code == "limit_exceeded"
    assert error.details["retry_after"] > 0
    error = await desk.refused("ann", OPEN, {"number": 1, "why": "x" * 20_000})
    assert error.code in {"too_large", "limit_exceeded"}


async def test_an_agent_that_lost_the_event_while_it_waited_is_refused() -> None:
    desk = await GatedDesk(wait=5.0).open()
    desk.hire("ann", "gated")
    seen: list[Any] = []

    async def call() -> None:
        seen.append(await desk.refused("ann", OPEN, {"number": 1}))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            while not desk.kernel.service(Approvals)._waiting:
                await anyio.lowlevel.checkpoint()
            (item,) = (await desk.ask("operator", "review:list", {"kind": "approval"}))["items"]
            desk.authority.fleet.remove(["ann"])
            await desk.decide("operator", item["id"])
    assert seen[0].details["reason"] == "revoked"
    (row,) = [row.entry for row in await desk.rows(event=OPEN, outcome="denied")]
    assert (row.principal, row.reason) == ("ann", "revoked")
    assert desk.runs == []


# ---- who may approve ----


async def test_no_agent_approves_its_own_request(desk: GatedDesk) -> None:
    review = await pending(desk, {"number": 1})
    answer = await desk.decide("ann", review)
    assert answer.error is not None
    assert answer.error.code == "denied"
    assert (await desk.decide("ann", review, "reject")).ok


async def test_agents_that_are_bound_do_not_free_each_other(desk: GatedDesk) -> None:
    desk.hire("bob", "gated")
    desk.hire("kid", "free", parent="ann")
    desk.hire("pia", "pilot")
    desk.hire("pit", "pilot")
    review = await pending(desk, {"number": 1})
    by_peer = await desk.decide("bob", review)
    by_child = await desk.decide("kid", review)
    launch = await pending(desk, None, "pia", "rocket:launch")
    by_pilot = await desk.decide("pit", launch)
    for answer, code in ((by_peer, "exceeds_parent"), (by_child, "denied")):
        assert answer.error is not None
        assert answer.error.code == code
    assert by_pilot.error is not None
    assert by_pilot.error.code == "exceeds_parent"
    kids = await pending(desk, {"number": 2}, "kid")
    assert not (await desk.decide("ann", kids)).ok


async def test_a_reviewer_that_may_do_it_freely_may_approve(desk: GatedDesk) -> None:
    desk.hire("fay", "free")
    assert (await desk.decide("fay", await pending(desk, {"number": 1}))).ok
    assert await desk.ask("ann", OPEN, {"number": 1}) == 1


async def test_a_reviewer_does_not_even_see_what_it_could_not_do(desk: GatedDesk) -> None:
    desk.hire("ray", "reviewer")
    review = await pending(desk, {"number": 1})
    assert (await desk.ask("ray", "review:list"))["items"] == []
    hidden, none = await desk.decide("ray", review), await desk.decide("ray", "0" * 12)
    assert hidden.error is not None
    assert none.error is not None
    assert repr(hidden.error).replace(review, "0" * 12) == repr(none.error)


async def test_a_reviewer_neither_sees_nor_decides_about_keys_that_it_may_not_touch(
    desk: GatedDesk,
) -> None:
    desk.hire("eve", "writer")
    desk.hire("sam", "scribe")
    near = await pending(desk, {"key": "team/a/x", "value": 1}, "eve", "state:set")
    far = await pending(desk, {"key": "team/b/x", "value": 1}, "eve", "state:set")
    assert [one["id"] for one in (await desk.ask("sam", "review:list"))["items"]] == [near]
    hidden = await desk.decide("sam", far)
    assert hidden.error is not None
    assert hidden.error.code == "not_found"
    assert (await desk.decide("sam", near)).ok


# ---- what is written down ----


async def test_every_step_is_in_the_audit_and_the_chain_holds(desk: GatedDesk) -> None:
    review = await pending(desk, {"number": 1, "why": "x"})
    await desk.decide("operator", review)
    await desk.ask("ann", OPEN, {"number": 1, "why": "x"})
    refused = await pending(desk, {"number": 2})
    await desk.decide("operator", refused, "reject")
    await desk.refused("ann", OPEN, {"number": 2})
    rows = [row.entry for row in reversed(await desk.rows(event=OPEN))]
    assert [(row.outcome, row.reason) for row in rows] == [
        ("waiting", "approval_required"),
        ("allowed", "granted"),
        ("waiting", "approval_required"),
        ("denied", "explicit_deny"),
    ]
    assert all(review in row.details.decode() for row in rows[:2])
    assert (await desk.ask("operator", "audit:verify"))["ok"]
