"""Security reviews through the daemon: inert until approved, and taken back when rejected."""

import pytest
from tests.fakes import texts
from tests.features.reviews.gated import CATALOGUE, PROFILES, GatedDesk

PAIR = "networked/network"


@pytest.fixture
async def desk() -> GatedDesk:
    desk = await GatedDesk().open()
    desk.hire("net", "networked")
    return desk


async def ids(desk: GatedDesk, status: str = "pending", who: str = "operator") -> list[str]:
    answer = await desk.ask(who, "review:list", {"status": status, "kind": "capability"})
    assert answer["total"] == len(answer["items"])
    return [item["id"] for item in answer["items"]]


async def test_the_list_shows_every_pair_that_waits_and_what_it_would_grant(
    desk: GatedDesk,
) -> None:
    answer = await desk.ask("operator", "review:list")
    (item,) = [one for one in answer["items"] if one["id"] == PAIR]
    assert item["grants"] == ["vault:look"]
    assert item["claude_tools"] == ["WebFetch"]
    assert item["definition_hash"] == desk.authority.catalogue.scopes["network"].fingerprint
    assert await ids(desk) == [PAIR, "own/network"]


async def test_an_approval_is_in_force_at_once_as_a_new_revision(desk: GatedDesk) -> None:
    refused = await desk.refused("net", "vault:look")
    assert refused.details["reason"] == "review_pending"
    before = desk.authority.catalogue.revision
    answer = await desk.decide("operator", PAIR, note="fine")
    assert answer.data["revision"] == before + 1
    await desk.ask("net", "vault:look")
    assert await ids(desk) == ["own/network"]
    assert await ids(desk, "approved") == [PAIR]


async def test_a_rejection_takes_an_approval_back(desk: GatedDesk) -> None:
    await desk.decide("operator", PAIR)
    await desk.decide("operator", PAIR, "reject", "no more")
    assert (await desk.refused("net", "vault:look")).details["reason"] == "review_pending"
    assert await ids(desk, "rejected") == [PAIR]
    await desk.decide("operator", PAIR)
    await desk.ask("net", "vault:look")


async def test_decisions_survive_a_restart(desk: GatedDesk) -> None:
    await desk.decide("operator", PAIR)
    desk = await desk.restarted()
    desk.hire("net", "networked")
    await desk.ask("net", "vault:look")
    await desk.decide("operator", PAIR, "reject")
    desk = await desk.restarted()
    desk.hire("net", "networked")
    await desk.refused("net", "vault:look")


async def test_a_changed_definition_waits_again_also_after_a_restart(desk: GatedDesk) -> None:
    await desk.decide("operator", PAIR)
    wider = CATALOGUE.replace("event_patterns: [vault:look]", "event_patterns: ['vault:*']")
    desk.files = texts(wider, **PROFILES)
    desk.authority.put_in_force(desk.authority.prepare())
    assert (await desk.refused("net", "vault:look")).details["reason"] == "review_pending"
    assert PAIR in await ids(desk)
    desk = await desk.restarted()
    desk.hire("net", "networked")
    await desk.refused("net", "vault:open", {"number": 1})
    await desk.decide("operator", PAIR)
    await desk.ask("net", "vault:look")


async def test_an_approval_does_not_put_half_an_edit_in_force(desk: GatedDesk) -> None:
    desk.files = texts("broken: [", **PROFILES)
    assert (await desk.decide("operator", PAIR)).ok
    await desk.ask("net", "vault:look")


async def test_a_reload_that_was_prepared_before_a_rejection_does_not_undo_it(
    desk: GatedDesk,
) -> None:
    await desk.decide("operator", PAIR)
    desk.files = texts(CATALOGUE, **PROFILES, more="capabilities: [vault]")
    prepared = desk.authority.prepare()
    await desk.decide("operator", PAIR, "reject")
    desk.authority.put_in_force(prepared)
    await desk.refused("net", "vault:look")


@pytest.mark.parametrize("pair", ["networked/vault", "nobody/network", "networked/", "/", "a/b/c"])
async def test_what_needs_no_review_cannot_be_decided(desk: GatedDesk, pair: str) -> None:
    answer = await desk.decide("operator", pair)
    assert answer.error is not None
    assert answer.error.code == "not_found"


async def test_the_same_decision_twice_is_a_conflict(desk: GatedDesk) -> None:
    await desk.decide("operator", PAIR)
    answer = await desk.decide("operator", PAIR)
    assert answer.error is not None
    assert answer.error.code == "conflict"


async def test_nobody_approves_for_their_own_profile_or_more_than_they_hold(
    desk: GatedDesk,
) -> None:
    desk.hire("owen", "own")
    desk.hire("fay", "free")
    for who, pair in (("owen", "own/network"), ("owen", PAIR), ("fay", PAIR)):
        answer = await desk.decide(who, pair)
        assert answer.error is not None
        assert answer.error.code == "not_found"
    assert await ids(desk, who="fay") == []
    await desk.refused("net", "vault:look")


async def test_the_warning_about_a_waiting_review_names_the_command(desk: GatedDesk) -> None:
    hints = [warning.hint for warning in desk.authority.catalogue.warnings]
    assert "an operator approves it with: remit review approve networked network" in hints
