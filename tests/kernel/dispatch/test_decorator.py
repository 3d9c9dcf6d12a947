"""Decorated functions: how a signature becomes an event."""

import functools
from typing import Annotated, Any, Literal

import msgspec
import pytest
from tests.fakes import Desk, texts

from remit.app.store import Store
from remit.errors import HandlerError, RemitError
from remit.features.state.store import StateRows
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import Registry
from remit.kernel.store.rows import BlobRows
from remit.model.grant import Grant, SessionKey
from remit.model.principal import Principal
from remit.policy.catalogue import Catalogue

CATALOGUE = "  lab: {description: Experiments}\n"


STOP = "did you mean 'place'? the fields here: kind, place"


class Greeting(msgspec.Struct):
    """Whom to greet, and how loudly."""

    name: str
    loud: bool = False


class Reply(msgspec.Struct):
    text: str
    length: int = 0


@pytest.fixture
def registry() -> Registry:
    return Registry()


def desk(registry: Registry) -> Desk:
    return Desk(registry.handlers(), texts(CATALOGUE, user="capabilities: {lab: true}\n"))


async def test_an_async_function_takes_a_struct_and_answers_with_one(registry: Registry) -> None:
    @registry.event_handler("lab:greet", capability="lab")
    async def greet(request: Greeting) -> Reply:
        text = f"hello {request.name}"
        return Reply(text.upper() if request.loud else text, len(text))

    answered = await desk(registry).ask("user", "lab:greet", {"name": "ann", "loud": True})
    assert answered == Reply("HELLO ANN", 9)


@pytest.mark.parametrize("inline", [True, False])
async def test_a_sync_function_takes_plain_parameters(registry: Registry, inline: bool) -> None:  # noqa: FBT001
    @registry.event_handler("lab:add", capability="lab", inline=inline)
    def add(first: int, second: int = 2, *, more: list[int] = [3]) -> int:  # noqa: B006
        more.append(first + second)
        return sum(more)

    served = desk(registry)
    assert await served.ask("user", "lab:add", {"first": 1}) == 6
    assert await served.ask("user", "lab:add", {"first": 1}) == 6, "a default is never shared"
    assert await served.ask("user", "lab:add", {"first": 1, "second": 5, "more": []}) == 6


@pytest.mark.parametrize("first", [True, False])
async def test_the_context_is_found_by_its_type_whatever_its_name_and_place(
    registry: Registry,
    first: bool,  # noqa: FBT001
) -> None:
    def before(anything: Context, key: str) -> str:
        return f"{anything.principal.id} {key}"

    def after(key: str, something: Context) -> str:
        return f"{something.principal.id} {key}"

    registry.event_handler("lab:who", capability="lab")(before if first else after)
    assert await desk(registry).ask("user", "lab:who", {"key": "a"}) == "ann a"


async def test_what_is_asked_for_by_type_is_filled_in_and_is_no_field(registry: Registry) -> None:
    @registry.event_handler("lab:all", capability="lab", effect="read")
    async def everything(  # noqa: PLR0913, PLR0917 - one of each
        caller: Principal,
        key: str,
        held: Grant,
        definitions: Catalogue,
        kept: Store,
        ctx: Context,
        session: SessionKey,
    ) -> list[object]:
        same = (caller is ctx.principal, held is ctx.grant, definitions is ctx.catalogue)
        return [caller.id, key, *same, kept.database is ctx.kernel.database, session]

    served = desk(registry)
    expected = ["ann", "a", True, True, True, True, SessionKey("ann")]
    assert await served.ask("user", "lab:all", {"key": "a"}) == expected
    assert set(registry.handlers()["lab:all"].input_schema["properties"]) == {"key"}
    for name in ("caller", "session", "kept"):
        answer = await served.answer("user", "lab:all", {"key": "a", name: {"owner": "eve"}})
        assert answer.error is not None
        assert answer.error.code == "invalid_data"


async def test_a_class_of_rows_is_filled_in_too_with_those_of_this_database(
    registry: Registry,
) -> None:
    @registry.event_handler("lab:keep", capability="lab")
    async def keep(rows: StateRows, blobs: BlobRows, key: str) -> bool:
        await rows.state_set(key, 1, "lab")
        return blobs.database is rows.database

    served = desk(registry)
    assert await served.ask("user", "lab:keep", {"key": "a"}) is True
    assert await served.store.state_get("a") is not None
    assert set(registry.handlers()["lab:keep"].input_schema["properties"]) == {"key"}


async def test_a_whole_request_stands_beside_what_is_filled_in(registry: Registry) -> None:
    @registry.event_handler("lab:greet", capability="lab", effect="read")
    def greet(caller: Principal, request: Greeting, session: SessionKey) -> str:
        return f"{caller.id} {request.name} {session.owner}"

    assert await desk(registry).ask("user", "lab:greet", {"name": "bob"}) == "ann bob ann"


async def test_a_request_cannot_fill_the_context(registry: Registry) -> None:
    @registry.event_handler("lab:who", capability="lab")
    def who(ctx: Context) -> str:
        return ctx.principal.id

    answer = await desk(registry).answer("user", "lab:who", {"ctx": {"principal": "operator"}})
    assert answer.error is not None
    assert (answer.error.code, answer.error.details) == ("invalid_data", {"path": "$.ctx"})


@pytest.mark.parametrize("strict", [True, False])
async def test_an_unknown_field_is_refused_also_by_a_struct_that_would_allow_it(
    registry: Registry,
    strict: bool,  # noqa: FBT001
) -> None:
    kind = msgspec.defstruct("Loose", [("key", str, "")], forbid_unknown_fields=strict)

    def take(request: Any) -> str:
        return str(request.key)

    take.__annotations__["request"] = kind
    registry.event_handler("lab:take", capability="lab")(take)
    answer = await desk(registry).answer("user", "lab:take", {"keyy": "a"})
    assert answer.error is not None
    hint = "did you mean 'key'? the fields here: key"
    assert (answer.error.code, answer.error.hint) == ("invalid_data", hint)


class Stop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    place: str = ""
    kind: Literal["short", "long"] = "short"


class Trip(msgspec.Struct, forbid_unknown_fields=True):
    first: Stop = Stop()
    others: list[str | Stop] = []
    named: dict[str, Stop] = {}
    pace: Literal["slow", "fast"] | None = None
    size: Literal[1, 2] = 1


@pytest.mark.parametrize(
    ("data", "path", "hint"),
    [
        pytest.param({"first": {"plce": "x"}}, "$.first.plce", STOP, id="one-level-down"),
        pytest.param({"others": ["a", {"plce": "x"}]}, "$.others[1].plce", STOP, id="in-a-list"),
        pytest.param({"named": {"a": {"plce": "x"}}}, "$.named[...].plce", STOP, id="in-a-map"),
        pytest.param(
            {"zzz": 1}, "$.zzz", "the fields here: first, named, others, pace, size", id="not-near"
        ),
        pytest.param(
            {"pace": "fats"}, "$.pace", "did you mean 'fast'? it is one of: fast, slow", id="choice"
        ),
        pytest.param({"pace": 7}, "$.pace", "it is one of: fast, slow", id="a-number-for-a-choice"),
        pytest.param({"size": 3}, "$.size", "it is one of: 1, 2", id="numbers"),
        pytest.param(
            {"others": [{"kind": "x"}]}, "$.others[0].kind", "it is one of: long, short", id="deep"
        ),
    ],
)
async def test_a_hint_lists_what_may_stand_at_that_level(
    registry: Registry, data: dict[str, Any], path: str, hint: str
) -> None:
    @registry.event_handler("lab:travel", capability="lab")
    async def travel(request: Trip) -> str:
        return request.first.place

    @registry.event_handler("lab:rest", capability="lab")
    async def rest() -> str:
        return "now"

    answer = await desk(registry).answer("user", "lab:travel", data)
    assert answer.error is not None
    assert (answer.error.code, answer.error.details["path"]) == ("invalid_data", path)
    assert answer.error.hint == hint
    empty = await desk(registry).answer("user", "lab:rest", {"a": 1})
    assert empty.error is not None
    assert empty.error.hint == "this event takes no data"


async def test_constraints_of_the_types_are_kept(registry: Registry) -> None:
    @registry.event_handler("lab:few", capability="lab")
    def few(count: Annotated[int, msgspec.Meta(ge=1, le=3)]) -> int:
        return count

    served = desk(registry)
    assert await served.ask("user", "lab:few", {"count": 3}) == 3
    answer = await served.answer("user", "lab:few", {"count": 4})
    assert answer.error is not None
    assert answer.error.details == {"path": "$.count"}


def unannotated(key) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Take something of no type."""


def variadic(*keys: str) -> None:
    """Take any number."""


def positional(key: str, /) -> None:
    """Take what has no name."""


def unreadable(key: "NoSuchType") -> None:  # type: ignore[name-defined]  # noqa: F821
    """Take something of a type that is nowhere."""


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (unannotated, "'key' has no type"),
        (variadic, "keys"),
        (positional, "key"),
        (unreadable, "NoSuchType"),
    ],
)
def test_a_signature_that_cannot_be_served_is_refused_with_its_place(
    registry: Registry, function: Any, said: str
) -> None:
    registry.event_handler("lab:bad", capability="lab")(function)
    with pytest.raises(HandlerError, match=r"test_decorator\.py:\d+:1") as caught:
        _ = registry.handlers()["lab:bad"].shape
    assert said in caught.value.message


def test_a_second_handler_for_an_event_is_an_error_that_names_both_places(
    registry: Registry,
) -> None:
    @registry.event_handler("lab:one", aliases=["lab:old"])
    def one() -> None:
        """Be first."""

    for name, aliases in (("lab:one", []), ("lab:old", []), ("lab:two", ["lab:one"])):
        with pytest.raises(HandlerError) as caught:
            registry.event_handler(name, aliases=aliases)(lambda: None)
        first, second = caught.value.message.split("and again:")
        assert "test_decorator.py:" in first
        assert "test_decorator.py:" in second
    assert set(registry.handlers()) == {"lab:one"}


@pytest.mark.parametrize("name", ["lab", "Lab:x", "lab:*", "lab:", "", "lab:x y", "lab:x\n"])
def test_a_name_that_is_no_event_name_is_refused(registry: Registry, name: str) -> None:
    with pytest.raises(HandlerError):
        registry.event_handler(name)(lambda: None)
    with pytest.raises(HandlerError):
        registry.event_handler("lab:fine", aliases=[name])(lambda: None)
    assert registry.handlers() == {}


async def test_an_old_name_still_works_and_counts_as_the_new_one(registry: Registry) -> None:
    @registry.event_handler("lab:new", capability="lab", aliases=["lab:old", "past:name"])
    def new() -> str:
        return "new"

    served = desk(registry)
    assert await served.ask("user", "past:name") == "new"
    assert served.counters.by_event == {"lab:new": 1}
    assert list(served.authority.catalogue.universe.names) == ["lab:new"]


async def test_a_function_that_is_wrapped_keeps_its_signature(registry: Registry) -> None:
    async def plain(key: str) -> str:
        return key

    @functools.wraps(plain)
    async def wrapped(*arguments: Any, **named: Any) -> str:
        return "wrapped " + await plain(*arguments, **named)

    registry.event_handler("lab:wrapped", capability="lab")(wrapped)
    assert await desk(registry).ask("user", "lab:wrapped", {"key": "a"}) == "wrapped a"


async def test_a_typed_failure_of_a_handler_travels_as_it_is(registry: Registry) -> None:
    class OutOfTeaError(RemitError):
        code = "out_of_tea"

    @registry.event_handler("lab:tea", capability="lab")
    async def tea() -> None:
        raise OutOfTeaError("no tea", hint="buy some", details={"cups": 0})

    answer = await desk(registry).answer("user", "lab:tea")
    assert answer.error is not None
    assert (answer.error.code, answer.error.message, answer.error.hint) == (
        "out_of_tea",
        "no tea",
        "buy some",
    )
    assert answer.error.details == {"cups": 0}
