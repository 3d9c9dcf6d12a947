"""What a caller asks about itself: its tools, what one of them is, its skills, news of its lists.

These requests are no events: nobody grants or denies them, and no name of an event has a slash.
They are answered from the live grant of whoever asks, in the session that the request names, and
never show more than that. The doors for hosts need them, so that MCP works whatever an agent may
ask for itself.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import msgspec

from remit.errors import InvalidDataError, RemitError
from remit.kernel.dispatch.call import Call, Job, bad_data, check_value, failure_of
from remit.kernel.dispatch.tool_list import host_tokens, shown_tools, tool_entry, tool_list
from remit.kernel.dispatch.tool_names import event_named
from remit.model.descriptor import tool_id
from remit.model.grant import Grant
from remit.model.schema import NAME_LIMIT
from remit.policy.tool_names import names_for
from remit_client.wire import Answer, Failure

if TYPE_CHECKING:
    from remit.kernel.authority.revision import Revision
    from remit.kernel.dispatch.context import Kernel

TOOLS, TOOL, SKILLS, NEWS = "self/tools", "self/tool", "self/skills", "self/news"
OWN_REQUESTS = frozenset({TOOLS, TOOL, SKILLS, NEWS})
UNMETERED = frozenset({SKILLS, NEWS})
"""News costs nothing, and a list of skills counts as the event that makes it."""
_SKILLS_EVENT = "skill:list"
_SECONDS = 20.0

Data = TypeVar("Data", bound=msgspec.Struct)


class ToolRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Which tool is meant, by its name, its event, or the id that discovery prints."""

    name: str


class ToolsRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Whether the answer is a list that a host puts before its model, and what it found last."""

    listed: bool = False
    found: tuple[str, ...] = ()


class Asked(msgspec.Struct, frozen=True, eq=False):
    """A request, with all that was looked up about it at one moment."""

    call: Call
    grant: Grant
    revision: "Revision"
    decision: str


class OwnCall:
    """A request of a caller about itself, on its way."""

    def __init__(
        self, kernel: "Kernel", asked: Asked, submit: Callable[[str], Answer | Job]
    ) -> None:
        """Take a request.

        Args:
            kernel: who knows names, and who tells.
            asked: what is asked.
            submit: asks for an event of some name instead, with the same data.
        """
        self._kernel = kernel
        self._asked = asked
        self._submit = submit

    async def run(self) -> Answer:
        """Answer it."""
        try:
            with anyio.move_on_after(_SECONDS):
                match self._asked.call.request.event:
                    case "self/tools":
                        return self._answer(await self._tools())
                    case "self/tool":
                        return await self._tool()
                    case "self/skills":
                        return await self._skills()
                    case _:
                        return self._answer(self._news())
        except RemitError as error:
            return self._answer(failure=failure_of(error))
        return self._answer(failure=Failure("timeout", f"no answer within {_SECONDS:g} s"))

    async def _tools(self) -> dict[str, Any]:
        """Every tool of the caller, with what a list of a host is made from."""
        asked = self._asked
        handlers, catalogue = asked.revision.table.by_event, asked.revision.catalogue
        events = shown_tools(handlers, catalogue, asked.grant)
        caller = asked.call.principal
        names = await self._kernel.names.give(caller, catalogue.universe, events)
        told = tool_list(handlers, catalogue, asked.grant, names=names)
        request = _decoded(asked.call, ToolsRequest)
        if request.listed:
            sent, everything = host_tokens(told, request.found), told | {"exposure": "all"}
            self._kernel.bills.charge(caller.id, "lists", sent, host_tokens(everything))
        return told

    async def _tool(self) -> Answer:
        """The event behind a name; a name that means nothing to the caller is a denial."""
        asked = self._asked
        name = _decoded(asked.call, ToolRequest).name[:NAME_LIMIT]
        catalogue, grant = asked.revision.catalogue, asked.grant
        handlers = asked.revision.table.by_event
        kept = await self._kernel.names.kept(asked.call.principal)
        events = shown_tools(handlers, catalogue, grant)
        event, meant = event_named(name, names_for(catalogue.universe, events, kept), kept)
        if event is None:
            event = self._by_event(name)
        if event is None:
            return await self._instead(meant)
        entry = tool_entry(handlers[event], name, pinned=event in grant.pinned)
        answer = self._answer({"tool": entry, "revision": catalogue.revision})
        old = name.removeprefix(tool_id(""))
        if catalogue.universe.aliases.get(old) == event:
            caller = asked.call.principal.id
            answer.warnings = [self._kernel.old_names.note(caller, "event", old, event)]
        return answer

    async def _skills(self) -> Answer:
        """A page of skills; none, and no denial, for a caller that may not list them."""
        revision = self._asked.revision.catalogue.revision
        if _SKILLS_EVENT in self._asked.grant.events:
            return await self._instead(_SKILLS_EVENT)
        return self._answer({"items": [], "total": 0, "next": None, "revision": revision})

    async def _instead(self, event: str) -> Answer:
        """What the door answers to a request for an event; what is not held is denied there."""
        outcome = self._submit(event)
        return outcome if isinstance(outcome, Answer) else await outcome.run()

    def _by_event(self, name: str) -> str | None:
        """What the caller may call by the name of an event, or by the id of its descriptor."""
        universe, granted = self._asked.revision.catalogue.universe, self._asked.grant.events
        for text in (name, name.removeprefix(tool_id(""))):
            event = universe.canonical(text)
            if event in granted and not universe.specs[event].pushed:
                return event
        return None

    def _news(self) -> dict[str, Any]:
        """Tell this connection from now on when a list of the caller may have changed."""
        call, revision = self._asked.call, self._asked.revision
        connection: Any = call.connection
        if connection is None:
            raise InvalidDataError("nothing can be pushed to this connection")
        self._kernel.delivery.tell_lists(connection, call.principal.id)
        return {"revision": revision.catalogue.revision}

    def _answer(self, data: Any = None, *, failure: Failure | None = None) -> Answer:
        return Answer(
            self._asked.call.request.id,
            ok=failure is None,
            data=data,
            error=failure,
            decision=self._asked.decision,
            revision=self._asked.revision.catalogue.revision,
        )


def _decoded(call: Call, kind: type[Data]) -> Data:
    data: Any = call.request.data
    try:
        if call.format == "object":
            check_value(data)
            return msgspec.convert({} if data is None else data, kind)
        decode = msgspec.msgpack.decode if call.format == "msgpack" else msgspec.json.decode
        nothing = b"\xc0" if call.format == "msgpack" else b"null"
        found = decode(bytes(data) or nothing, type=kind | None)
        return msgspec.convert({}, kind) if found is None else found
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise bad_data(error, kind) from error
