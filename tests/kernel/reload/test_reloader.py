"""Putting edits in force: all or nothing, one at a time, and everybody is told what it means."""

import time
from typing import Any

import anyio
import pytest
from tests.fakes import Desk, built_in_handlers, texts

from remit.errors import StoreError
from remit.kernel.authority.plans import changes_between, holdings
from remit.kernel.authority.standing import LAST_GOOD
from remit.kernel.reload.full_reload import Outcome
from remit.kernel.reload.reload import CHANGED, REJECTED
from remit.kernel.store.rows import BlobRows
from remit.model.event import Notice
from remit.model.names import EventPattern
from remit.model.principal import Agent, AgentSpec, Cause
from remit.policy.catalogue import Approval, Scope
from remit.policy.plan import plan as make_plan

CATALOGUE = """\
  base: {description: d, event_patterns: [system:health, permission:changed], always_included: true}
  read: {description: d, event_patterns: [state:get]}
  write: {description: d, event_patterns: [state:set], claude_tools: [Write]}
  admin: {description: d, event_patterns: [config:changed, config:rejected]}
"""
READ = "capabilities: {read: true}\n"
WRITE = "capabilities: {write: true}\n"
BOTH = "capabilities: {read: true, write: true}\n"
BROKEN = "capabilities: {raed: true}\nlimits: {no_such: 1}\n"
BY_HAND = Cause("signal")
WATCHER = "capabilities: {admin: true}\n"


class Told:
    """What was sent, to whom: a face that keeps it."""

    def __init__(self) -> None:
        self.notices: list[tuple[str, Notice]] = []

    def deliver(self, connection: Any, notice: Notice) -> bool:
        self.notices.append((connection.name, notice))
        return True

    def tell(self, name: str, notice: Notice) -> int:
        self.notices.append((name, notice))
        return 1

    def of(self, event: str) -> list[tuple[str, Any]]:
        return [(name, notice.data) for name, notice in self.notices if notice.event == event]


class Ear:
    """A connection of the watcher."""

    name = "watcher"


def files(worker: str) -> Any:
    return texts(CATALOGUE, worker=worker, reader=READ, watcher=WATCHER)


class Site(Desk):
    def __init__(self) -> None:
        super().__init__(built_in_handlers(), files(READ))
        self.told = Told()
        self.kernel.delivery.post = self.told
        for name, profile in (("ann", "worker"), ("bob", "reader"), ("watcher", "watcher")):
            self.authority.fleet.add(Agent(id=name, spec=AgentSpec(profile=profile)))
        self.kernel.delivery.bus.subscribe(Ear(), patterns=[EventPattern.parse("config:*")])

    async def edit(self, worker: str) -> Any:
        self.files = files(worker)
        return await self.kernel.reloader.reload(BY_HAND)


@pytest.fixture
def site() -> Site:
    return Site()


async def test_each_affected_agent_is_told_what_it_gained_and_lost(site: Site) -> None:
    await site.edit(WRITE)
    assert site.told.of("permission:changed") == [
        (
            "ann",
            {
                "gained": ("state:set",),
                "lost": ("state:get",),
                "tools_gained": ("Write",),
                "tools_lost": (),
                "limits_changed": {},
                "approval_added": (),
                "approval_removed": (),
                "tools_shown": ("state:set",),
                "tools_hidden": ("state:get",),
                "tools_changed": (),
                "exposure_changed": (),
                "pinned_added": (),
                "pinned_removed": (),
                "revision": 2,
            },
        )
    ]


async def test_those_who_watch_are_told_the_plan(site: Site) -> None:
    await site.edit(WRITE)
    ((name, data),) = site.told.of(CHANGED)
    assert (name, data["revision"], data["summary"]["agents"]) == ("watcher", 2, 1)
    assert data["profiles"]["worker"]["granted"] == ("state:set",)


async def test_an_agent_is_told_when_its_calls_begin_or_cease_to_wait_for_approval(
    site: Site,
) -> None:
    gated = READ + "approval_required: [state:get]\n"
    for text, field in ((gated, "approval_added"), (READ, "approval_removed")):
        outcome = await site.edit(text)
        assert outcome.plan.agents == 1
        name, data = site.told.of("permission:changed")[-1]
        assert (name, data[field], data["gained"]) == ("ann", ("state:get",), ())


async def test_an_agent_is_told_when_other_tools_of_it_are_listed(site: Site) -> None:
    few = READ + "exposure: discovered\n"
    steps: list[tuple[str, dict[str, tuple[str, ...]]]] = [
        (few, {"exposure_changed": ("all", "discovered")}),
        (few + "pinned: ['state:*']\n", {"pinned_added": ("state:get",)}),
        (few, {"pinned_removed": ("state:get",)}),
        (READ, {"exposure_changed": ("discovered", "all")}),
    ]
    for text, expected in steps:
        outcome = await site.edit(text)
        assert outcome.plan.agents == 1
        name, data = site.told.of("permission:changed")[-1]
        told = {field: value for field, value in data.items() if value and field != "revision"}
        assert (name, told) == ("ann", expected)
    assert len(site.told.of("permission:changed")) == len(steps)


async def test_an_agent_is_told_when_what_it_holds_ceases_to_be_a_tool(site: Site) -> None:
    hidden = CATALOGUE.replace("[state:get]", "[state:get], mcp_tools: false")
    site.files = texts(hidden, worker=READ, reader=READ, watcher=WATCHER)
    await site.kernel.reloader.reload(BY_HAND)
    told = dict(site.told.of("permission:changed"))
    assert set(told) == {"ann", "bob"}
    assert (told["ann"]["tools_hidden"], told["ann"]["lost"]) == (("state:get",), ())


async def test_an_agent_hears_nothing_of_an_edit_that_changes_no_list(site: Site) -> None:
    outcome = await site.edit(READ + "pinned: [state:get]\nexposure: all\nprompt: Be kind\n")
    assert outcome.plan.changes["worker"].pinned_added == ("state:get",)
    assert (outcome.plan.agents, site.told.of("permission:changed")) == (0, [])


async def test_an_agent_hears_nothing_of_reviews_and_denials_that_it_does_not_notice(
    site: Site,
) -> None:
    outcome = await site.edit(READ + "disallowed_tools: [state:delete]\n")
    assert outcome.plan.changes["worker"].denied_added == ("state:delete",)
    assert (outcome.plan.agents, site.told.of("permission:changed")) == (0, [])


async def test_a_child_is_told_when_its_parent_loses_something(site: Site) -> None:
    site.authority.fleet.add(Agent(id="kid", parent="ann", spec=AgentSpec(inherit=True)))
    outcome = await site.edit("")
    assert outcome.plan.agents == 2
    assert {name for name, _ in site.told.of("permission:changed")} == {"ann", "kid"}


async def test_a_bad_edit_is_told_with_every_error_once(site: Site) -> None:
    await site.edit(BROKEN)
    outcome = await site.edit(BROKEN)
    assert (outcome.changed, outcome.revision, len(outcome.problems)) == (False, 1, 2)
    ((_, data),) = site.told.of(REJECTED)
    assert [error["code"] for error in data["errors"]] == [p.code for p in outcome.problems]
    assert site.authority.is_stale


async def test_taking_a_bad_edit_back_ends_staleness_without_a_new_revision(site: Site) -> None:
    await site.edit(BROKEN)
    outcome = await site.edit(READ)
    assert (outcome.changed, outcome.revision, site.authority.is_stale) == (False, 1, False)
    ((_, data),) = site.told.of(CHANGED)
    assert (data["changed"], data["profiles"]) == (False, {})


async def test_the_same_bytes_are_no_new_revision(site: Site) -> None:
    outcome = await site.edit(READ)
    assert (outcome.changed, outcome.revision) == (False, 1)
    assert site.told.notices == []


async def test_another_comment_is_a_new_revision_that_changes_nobody(site: Site) -> None:
    outcome = await site.edit(READ + "# why not\n")
    assert (outcome.revision, outcome.plan.changes, outcome.plan.agents) == (2, {}, 0)


async def test_a_store_that_is_full_does_not_stop_a_narrowing_edit(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_rows: BlobRows, _name: str, _data: bytes) -> None:
        raise StoreError("no space left")

    monkeypatch.setattr(BlobRows, "blob_put", refuse)
    assert (await site.edit("")).revision == 2
    assert "state:get" not in site.authority.catalogue.grants["worker"].events


async def test_what_is_in_force_is_kept_before_anybody_is_told(site: Site) -> None:
    await site.edit(WRITE)
    kept = await site.store.blob_get(LAST_GOOD)
    assert kept is not None
    assert b"write: true" in kept


async def test_all_who_ask_during_a_reload_share_the_next_one(site: Site) -> None:
    reads = 0
    read = site.authority._read

    def counted() -> Any:
        nonlocal reads
        reads += 1
        return read()

    site.authority._read = counted
    site.files = files(WRITE)
    outcomes = []

    async def ask() -> None:
        outcomes.append(await site.kernel.reloader.reload(BY_HAND))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(ask)
    assert reads <= 2
    assert {outcome.revision for outcome in outcomes} == {2}


async def test_a_cancelled_reload_leaves_the_next_one_working(site: Site) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await site.edit(WRITE)
    assert (await site.edit(BOTH)).plan.changes
    assert "state:set" in site.authority.catalogue.grants["worker"].events


async def test_the_operator_reloads_by_an_event(site: Site) -> None:
    site.files = files(WRITE)
    planned = await site.ask("operator", "config:plan")
    done = await site.ask("operator", "config:reload")
    assert planned["profiles"] == done["profiles"]
    assert planned["summary"] == done["summary"]
    assert (done["revision"], done["changed"], done["summary"]["agents"]) == (2, True, 1)


async def test_a_refused_reload_answers_with_every_error(site: Site) -> None:
    site.files = files(BROKEN)
    answer = await site.answer("operator", "config:reload")
    assert answer.error is not None
    assert answer.error.code == "invalid_definition"
    assert len(answer.error.details["problems"]) == 2


async def test_a_plan_of_a_draft_counts_living_agents_and_deleted_profiles(site: Site) -> None:
    draft = {"compositions": {"reader.yaml": f"name: reader\n{BOTH}"}, "complete": True}
    report = await site.ask("operator", "composition:plan", draft)
    assert list(report["profiles"]) == ["reader", "watcher", "worker"]
    assert report["summary"]["agents"] == 3
    assert site.authority.catalogue.revision == 1


async def test_changes_of_agents_themselves_are_told_the_same_way(site: Site) -> None:
    fleet, catalogue = site.authority.fleet, site.authority.catalogue
    before = holdings(fleet, catalogue, fleet.subtree("ann"))
    fleet.replace(
        Agent(id="ann", spec=AgentSpec(profile="reader", disallowed_tools=("state:get",)))
    )
    after = holdings(fleet, catalogue, fleet.subtree("ann"))
    changes = changes_between(before, after)
    assert site.kernel.delivery.tell_changes(changes, revision=1) == 1
    ((name, data),) = site.told.of("permission:changed")
    assert (name, data["lost"]) == ("ann", ("state:get",))


async def test_ten_thousand_agents_are_compared_by_their_few_grants(site: Site) -> None:
    fleet = site.authority.fleet
    for number in range(10_000):
        parent = f"a{number // 10}" if number else None
        profile = "worker" if number % 2 else "reader"
        fleet.add(Agent(id=f"a{number}", parent=parent, spec=AgentSpec(profile=profile)))
    before = holdings(fleet, site.authority.catalogue)
    site.files = files("")
    after = site.authority.prepare()
    started = time.process_time()
    changes = changes_between(before, holdings(fleet, after.catalogue))
    spent = time.process_time() - started
    assert len({id(change) for change in changes.values()}) < 50
    assert spent < 2, "0.2 s is the budget, and this machine may be busy"


async def test_an_agent_whose_profile_vanishes_keeps_what_everybody_has_without_its_limits(
    site: Site,
) -> None:
    await site.edit(READ + "limits: {max_children: 2}\n")
    before = holdings(site.authority.fleet, site.authority.catalogue)
    site.files = texts(CATALOGUE, reader=READ, watcher=WATCHER)
    await site.kernel.reloader.reload(BY_HAND)
    after = holdings(site.authority.fleet, site.authority.catalogue)
    change = changes_between(before, after)["ann"]
    assert "state:get" in change.revoked
    assert not change.granted
    assert change.limits_changed == {"max_children": [2, None]}


async def rows(site: Site) -> list[dict[str, Any]]:
    """What the audit says of the configuration, oldest first."""
    found = await site.ask("operator", "audit:query", {"event": "config:*"})
    return [item for item in reversed(found["items"]) if item["event"] != "config:reload"]


async def test_a_change_by_an_edited_file_is_in_the_audit_with_its_summary(site: Site) -> None:
    site.files = files(WRITE)
    await site.kernel.reloader.reload(Cause("files_edited"))
    (row,) = await rows(site)
    assert (row["principal"], row["event"], row["outcome"], row["reason"], row["revision"]) == (
        *("daemon", "config:changed", "allowed", "files_edited", 2),
    )
    details = row["details"]
    assert (details["revision_before"], details["revision_after"]) == (1, 2)
    assert (details["summary"]["granted"], details["summary"]["revoked"]) == (1, 1)
    assert details["profiles"] == ["worker"]


async def test_a_refused_edit_is_in_the_audit_once_with_its_mistakes(site: Site) -> None:
    await site.edit(BROKEN)
    await site.edit(BROKEN)
    (row,) = await rows(site)
    assert (row["principal"], row["event"], row["outcome"], row["reason"]) == (
        *("daemon", "config:rejected", "failed", "invalid_definition"),
    )
    assert (row["details"]["revision_before"], row["details"]["revision_after"]) == (1, 1)
    assert (row["details"]["errors"], row["details"]["cause"]) == (2, "signal")
    assert "raed" in row["details"]["first"][0]["message"]


async def test_a_bad_edit_that_is_taken_back_is_in_the_audit(site: Site) -> None:
    await site.edit(BROKEN)
    await site.edit(READ)
    _, back = await rows(site)
    assert (back["event"], back["details"]["summary"]["profiles"]) == ("config:changed", 0)


async def test_a_reload_that_somebody_asked_for_bears_that_name_and_decision(site: Site) -> None:
    site.files = files(WRITE)
    answer = await site.answer("operator", "config:reload")
    (row,) = await rows(site)
    assert (row["principal"], row["reason"], row["decision"]) == (
        *("operator", "requested", answer.decision),
    )


async def test_a_change_is_in_the_audit_before_it_is_in_force(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, seen = site.store.audit_append, []

    async def watched(entry: Any, **options: Any) -> Any:
        seen.append((entry.event, site.authority.catalogue.revision, list(site.told.notices)))
        return await append(entry, **options)

    monkeypatch.setattr(site.store, "audit_append", watched)
    await site.edit(WRITE)
    assert seen == [("config:changed", 1, [])]


async def test_a_full_disk_stops_an_edit_that_gives_and_none_that_only_takes(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_entry: Any, **_options: Any) -> None:
        raise StoreError("no space left")

    monkeypatch.setattr(site.store, "audit_append", refuse)
    with pytest.raises(StoreError):
        await site.edit(BOTH)
    assert site.authority.catalogue.revision == 1
    assert (await site.edit("")).revision == 2
    assert "state:get" not in site.authority.catalogue.grants["worker"].events
    assert (await site.edit(BROKEN)).problems, "refused whether or not that is written"


@pytest.mark.parametrize(
    ("act", "told", "written"),
    [
        pytest.param(
            lambda fleet: fleet.add(Agent(id="eve", spec=AgentSpec(profile="worker"))),
            ["ann", "eve"],
            [["ann"], ["eve"]],
            id="one-that-came",
        ),
        pytest.param(lambda fleet: fleet.remove(["ann"]), [], [["ann"]], id="one-that-went"),
    ],
)
async def test_agents_that_come_and_go_while_an_edit_is_written_are_counted_as_they_are(
    site: Site, monkeypatch: pytest.MonkeyPatch, act: Any, told: list[str], written: list[list[str]]
) -> None:
    put, acts = BlobRows.blob_put, [act]

    async def meanwhile(rows: BlobRows, name: str, data: bytes) -> None:
        while acts:
            acts.pop()(site.authority.fleet)
        await put(rows, name, data)

    monkeypatch.setattr(BlobRows, "blob_put", meanwhile)
    outcome = await site.edit(BOTH)
    assert sorted(outcome.plan.agent_changes) == told
    assert sorted(name for name, _ in site.told.of("permission:changed")) == told
    assert [row["details"]["agents"] for row in await rows(site)] == written


async def test_an_edit_that_a_review_overtakes_is_written_as_it_came_about(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = BlobRows.blob_put
    decided = False

    async def overtaken(rows: BlobRows, name: str, data: bytes) -> None:
        nonlocal decided
        if not decided:
            decided = True
            site.authority.approve(frozenset({Approval("worker", "write", Scope((), frozenset()))}))
        await put(rows, name, data)

    monkeypatch.setattr(BlobRows, "blob_put", overtaken)
    assert (await site.edit(WRITE)).revision == 3
    found = [(row["outcome"], row["details"]["revision_after"]) for row in await rows(site)]
    assert found == [("allowed", 2), ("failed", 2), ("allowed", 3)]


async def test_how_a_run_begins_is_in_the_audit_when_it_is_not_as_the_last_one_ended(
    site: Site,
) -> None:
    reloader = site.kernel.reloader
    await reloader.begin(None)
    assert await rows(site) == []
    plan = make_plan({}, site.authority.catalogue.grants)
    await reloader.begin(Outcome(changed=True, revision=1, plan=plan))
    await site.edit(BROKEN)
    await reloader.begin(None)
    assert [(row["event"], row["details"]["cause"]) for row in await rows(site)] == [
        ("config:changed", "started"),
        ("config:rejected", "signal"),
        ("config:rejected", "started"),
    ]


async def test_nobody_is_called_like_the_daemon(site: Site) -> None:
    key = {
        "name": "daemon",
        "profile": "reader",
        "public_key": "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7",
    }
    answer = await site.answer("operator", "key:add", key)
    assert answer.error is not None
    assert answer.error.code == "conflict"
