"""Events that come and go while the daemon runs: whole revisions, or nothing."""

from collections.abc import Mapping
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes import Desk, built_in_handlers, texts

from remit.errors import DefinitionError, HandlerError, StoreError
from remit.kernel.dispatch.call import Call
from remit.kernel.dispatch.handler import Handler
from remit.kernel.dispatch.registry import Registry
from remit.kernel.dispatch.runner import RunningCall
from remit.model.event import Notice
from remit.model.names import EventPattern
from remit.model.principal import Agent, AgentSpec, Cause, Principal
from remit_client.wire import Request

CATALOGUE = """\
  base: {description: d, event_patterns: [system:health, permission:changed], always_included: true}
  sky: {description: d, event_patterns: ["sky:*"]}
  one: {description: d, event_patterns: [sky:look]}
  watch: {description: d, event_patterns: [config:changed]}
  mail: {description: d, event_patterns: [state:get]}
"""
PROFILES = {
    "sailor": "capabilities: [sky]",
    "clerk": "capabilities: [mail]",
    "narrow": "capabilities: [one]",
    "watcher": "capabilities: [watch]",
}
CAUSE = Cause("events_changed", by="ann")


class Post:
    """A face that keeps what was sent."""

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
    name = "watcher"


class Sky(Desk):
    """A desk with agents, whose events come and go."""

    def __init__(self, **profiles: str) -> None:
        super().__init__(built_in_handlers(), texts(CATALOGUE, **PROFILES | profiles))
        self.post = self.kernel.delivery.post = Post()
        self.kernel.delivery.bus.subscribe(Ear(), patterns=[EventPattern.parse("config:*")])
        for profile in PROFILES:
            self.hire(profile, profile)

    def hire(self, name: str, profile: str, **changes: Any) -> None:
        spec = AgentSpec(profile=profile, **changes)
        self.authority.fleet.add(Agent(id=name, spec=spec))

    def who(self, name: str) -> Principal:
        found = self.authority.fleet.principal(name)
        assert found is not None
        return found

    async def bring(self, source: str, handlers: Mapping[str, Handler]) -> Any:
        return await self.kernel.reloader.change_events(
            lambda table: table.with_source(source, handlers), CAUSE
        )

    async def take(self, source: str) -> Any:
        return await self.kernel.reloader.change_events(
            lambda table: table.without_source(source), CAUSE
        )

    async def call(self, name: str, event: str, data: Any = None) -> Any:
        return await self.dispatcher.dispatch(self.who(name), event, data)

    async def code(self, name: str, event: str) -> str:
        answer = await self.call(name, event)
        return "ok" if answer.error is None else answer.error.code


def events(*names: str, answer: Any = None, **flags: Any) -> dict[str, Handler]:
    registry = Registry()
    for name in names:

        @registry.event_handler(name, effect="read", **flags)
        async def handle() -> Any:
            """Look at the sky."""
            return answer

    return registry.handlers()


@pytest.fixture
def sky() -> Sky:
    return Sky()


async def test_an_event_that_comes_is_a_new_revision_for_those_who_hold_its_pattern(
    sky: Sky,
) -> None:
    assert await sky.code("sailor", "sky:look") == "denied"
    outcome = await sky.bring("extension:sky", events("sky:look", "sky:listen"))
    assert (outcome.changed, outcome.revision, outcome.plan.agents) == (True, 2, 2)
    assert outcome.plan.changes["sailor"].granted == ("sky:listen", "sky:look")
    assert await sky.code("sailor", "sky:look") == "ok"
    assert await sky.code("narrow", "sky:look") == "ok"
    assert await sky.code("narrow", "sky:listen") == "denied"
    assert await sky.code("clerk", "sky:look") == "denied"


async def test_nobody_s_rights_widen_silently(sky: Sky) -> None:
    await sky.bring("extension:sky", events("sky:look"))
    told = dict(sky.post.of("permission:changed"))
    assert set(told) == {"sailor", "narrow"}
    assert (told["sailor"]["gained"], told["sailor"]["revision"]) == (("sky:look",), 2)
    ((_, announced),) = sky.post.of("config:changed")
    assert announced["profiles"]["sailor"]["granted"] == ("sky:look",)
    (row,) = (await sky.store.audit_query(limit=9, event="config:changed")).items
    entry = row.entry
    assert (entry.principal, entry.reason, entry.revision) == ("ann", "events_changed", 2)


async def test_an_event_that_goes_is_answered_like_one_that_never_was(sky: Sky) -> None:
    never = await sky.call("sailor", "sky:look")
    await sky.bring("extension:sky", events("sky:look"))
    await sky.take("extension:sky")
    gone = await sky.call("sailor", "sky:look")
    assert gone.error == never.error
    assert (await sky.answer("operator", "sky:look")).error.code == "unknown_event"  # type: ignore[union-attr]
    assert await sky.code("sailor", "system:health") == "ok"


async def test_no_wildcard_grants_an_event_that_must_be_named(sky: Sky) -> None:
    await sky.bring("extension:sky", events("sky:look", "sky:fall", wildcard=False))
    assert await sky.code("sailor", "sky:fall") == "denied"
    assert await sky.code("narrow", "sky:look") == "ok"


@pytest.mark.parametrize(
    "handlers",
    [
        pytest.param(events("state:get"), id="an-event"),
        pytest.param(events("sky:look", aliases=["state:get"]), id="by-an-old-name"),
        pytest.param(events("deep:look"), id="of-another-source"),
        pytest.param(events("deep:see"), id="an-old-name-of-another-source"),
        pytest.param(events("sky:look", aliases=["deep:see"]), id="both-old"),
    ],
)
async def test_a_source_cannot_take_over_somebody_else_s_event(
    sky: Sky, handlers: dict[str, Handler]
) -> None:
    await sky.bring("extension:deep", events("deep:look", aliases=["deep:see"]))
    before = sky.authority.current
    with pytest.raises(HandlerError):
        await sky.bring("extension:sky", handlers)
    assert sky.authority.current is before


async def test_a_source_may_replace_its_own_events(sky: Sky) -> None:
    await sky.bring("mcp:sky", events("sky:look", "sky:listen", answer=1))
    await sky.bring("mcp:sky", events("sky:look", "sky:smell", answer=2))
    assert (await sky.call("sailor", "sky:look")).data == 2
    assert await sky.code("sailor", "sky:listen") == "denied"
    assert await sky.code("sailor", "sky:smell") == "ok"


async def test_events_that_a_denial_needs_cannot_be_taken_away() -> None:
    sky = Sky()
    await sky.bring("extension:sky", events("sky:look", "sky:fall"))
    sky.files = texts(CATALOGUE, **PROFILES, wary="capabilities: [sky]\ndisallowed_tools: [sky:f*]")
    await sky.kernel.reloader.reload(Cause("signal"))
    before = sky.authority.current
    with pytest.raises(DefinitionError):
        await sky.take("extension:sky")
    assert sky.authority.current is before
    assert not sky.authority.is_stale, "the files on disk are not to blame"
    assert await sky.code("sailor", "sky:fall") == "ok"


async def test_an_agent_s_own_denial_outlives_the_event_that_it_denies(sky: Sky) -> None:
    await sky.bring("extension:sky", events("sky:look", "sky:fall"))
    sky.hire("mate", "sailor", disallowed_tools=("sky:fall",))
    await sky.take("extension:sky")
    assert await sky.code("mate", "system:health") == "ok"
    await sky.bring("extension:sky", events("sky:look", "sky:fall"))
    assert await sky.code("mate", "sky:look") == "ok"
    assert await sky.code("mate", "sky:fall") == "denied"


async def test_events_do_not_come_when_that_cannot_be_written_down(sky: Sky) -> None:
    async def full(*_arguments: Any, **_fields: Any) -> None:
        raise StoreError("the disk is full")

    sky.kernel.audit_log.record = full  # type: ignore[method-assign]
    before = sky.authority.current
    with pytest.raises(StoreError):
        await sky.bring("extension:sky", events("sky:look"))
    assert sky.authority.current is before


async def test_bad_files_stay_marked_while_events_come_and_a_reload_keeps_the_events(
    sky: Sky,
) -> None:
    good, sky.files = sky.files, texts("broken: [")
    await sky.kernel.reloader.reload(Cause("signal"))
    await sky.bring("extension:sky", events("sky:look"))
    assert (await sky.ask("operator", "system:health"))["stale"]
    sky.files = good
    await sky.kernel.reloader.reload(Cause("signal"))
    assert not (await sky.ask("operator", "system:health"))["stale"]
    assert await sky.code("sailor", "sky:look") == "ok"


async def test_a_call_that_runs_goes_on_when_its_event_is_taken_away(sky: Sky) -> None:
    registry, begun, go_on = Registry(), anyio.Event(), anyio.Event()

    @registry.event_handler("sky:look", effect="read")
    async def look() -> str:
        """Look for long."""
        begun.set()
        await go_on.wait()
        return "seen"

    await sky.bring("extension:sky", registry.handlers())
    answers: list[Any] = []

    async def ask() -> None:
        answers.append(await sky.call("sailor", "sky:look"))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await begun.wait()
            await sky.take("extension:sky")
            go_on.set()
    assert (answers[0].data, answers[0].revision) == ("seen", 2)


async def test_what_was_asked_of_one_handler_is_never_done_by_another(sky: Sky) -> None:
    await sky.bring("extension:sky", events("sky:look", answer="old"))
    nothing: Any = None
    job = sky.dispatcher.submit(Call(sky.who("sailor"), Request(1, "sky:look", nothing)))
    assert isinstance(job, RunningCall)
    await sky.bring("extension:sky", events("sky:look", answer="new"))
    answer = await job.run()
    assert answer.error is not None
    assert (answer.error.code, answer.error.details["reason"]) == ("denied", "revoked")
    assert (await sky.call("sailor", "sky:look")).data == "new"


# ---- whatever comes, goes and is asked meanwhile ----

SOURCES = {"extension:a": ("sky:look", "sky:listen"), "extension:b": ("sky:smell", "deep:dive")}
ALL_EVENTS = {name for names in SOURCES.values() for name in names}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("bring"), st.sampled_from(sorted(SOURCES))),
        st.tuples(st.just("take"), st.sampled_from(sorted(SOURCES))),
        st.tuples(st.just("clash"), st.sampled_from(sorted(SOURCES))),
        st.tuples(
            st.sampled_from(["sailor", "clerk", "narrow"]), st.sampled_from(sorted(ALL_EVENTS))
        ),
        st.tuples(st.just("wait"), st.integers(0, 3)),
    ),
    max_size=25,
)


def generation(source: str, number: int) -> dict[str, Handler]:
    """The events of a source, answering which generation of it they belong to."""
    registry = Registry()
    for at, name in enumerate(SOURCES[source]):
        function = _fixed(number, is_async=at > 0)
        registry.event_handler(name, effect="read", inline=at == 0)(function)
    return registry.handlers()


def _fixed(number: int, *, is_async: bool) -> Any:
    def now() -> int:
        """Answer at once."""
        return number

    async def later() -> int:
        """Answer after others had their turn."""
        await checkpoint()
        await checkpoint()
        return number

    return later if is_async else now


def _answer_of(function: Any) -> int:
    """What it will answer, without asking it."""
    number: int = function.__closure__[0].cell_contents
    return number


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_no_answer_ever_mixes_a_revision_with_the_handlers_of_another(steps: list[Any]) -> None:
    play = Play()
    anyio.run(play.act, steps)
    for name, event, answer in play.answers:
        served = play.served[answer.revision]
        if answer.error is None:
            assert event in play.granted[answer.revision][name]
            assert served[event] == answer.data
        else:
            assert answer.error.code == "denied"


class Play(Sky):
    """Changes and calls all at once; what each revision really was is written down beside."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[tuple[str, str, Any]] = []
        self.served: dict[int, dict[str, int]] = {}
        self.granted: dict[int, dict[str, frozenset[str]]] = {}
        self.note()
        swap = self.authority.put_in_force

        def put_in_force(revision: Any) -> None:
            swap(revision)
            self.note()

        self.authority.put_in_force = put_in_force  # type: ignore[method-assign]

    def note(self) -> None:
        current, fleet = self.authority.current, self.authority.fleet
        handlers, number = current.table.by_event, current.catalogue.revision
        present = [handlers[name] for name in ALL_EVENTS & handlers.keys()]
        self.served[number] = {each.spec.name: _answer_of(each.function) for each in present}
        self.granted[number] = {
            name: fleet.grant(name, current.catalogue).events for name in PROFILES
        }

    async def act(self, steps: list[Any]) -> None:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for number, (kind, what) in enumerate(steps):
                    if kind == "wait":
                        await checkpoint()
                    elif kind in PROFILES:
                        tasks.start_soon(self.ask_for, kind, what)
                    else:
                        tasks.start_soon(self.change, kind, what, number)

    async def ask_for(self, name: str, event: str) -> None:
        self.answers.append((name, event, await self.call(name, event)))

    async def change(self, kind: str, source: str, number: int) -> None:
        if kind == "take":
            await self.take(source)
        elif kind == "bring":
            await self.bring(source, generation(source, number))
        else:
            with pytest.raises(HandlerError):
                await self.bring(source, events("state:get"))


async def test_those_who_have_a_tool_hear_that_it_is_described_otherwise(sky: Sky) -> None:
    await sky.bring("extension:sky", events("sky:look", "sky:listen"))
    sky.post.notices.clear()
    same = await sky.bring("extension:sky", events("sky:look", "sky:listen"))
    assert (same.plan.agents, sky.post.of("permission:changed")) == (0, [])
    other = events("sky:look", open_world=True) | events("sky:listen")
    outcome = await sky.bring("extension:sky", other)
    told = dict(sky.post.of("permission:changed"))
    assert {name: data["tools_changed"] for name, data in told.items()} == {
        "sailor": ("sky:look",),
        "narrow": ("sky:look",),
    }
    assert outcome.plan.changes["sailor"].tools_changed == ("sky:look",)


async def test_a_tool_that_wants_the_name_of_another_is_news_to_nobody_else(sky: Sky) -> None:
    await sky.bring("extension:sky", events("sky:look"))
    sky.post.notices.clear()
    await sky.bring("extension:rival", events("rival:look", tool="sky_look"))
    assert sky.post.of("permission:changed") == []
