"""Talking to the running daemon from a command."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from remit.cli.options import variables_of
from remit.config.settings.home import Home
from remit.config.settings.lock import running_pid
from remit.config.settings.table import Settings
from remit.errors import DefinitionError, Place, Problem, with_code
from remit.model.names import did_you_mean

if TYPE_CHECKING:
    from remit_client.sync import Client


@contextmanager
def connected(settings: Settings, key: str | None = None) -> Iterator["Client"]:
    """A connection to the daemon of this home; its failures are ours.

    The key is the one given, else REMIT_KEY's, else the operator's in the home.

    Raises:
        RemitError: the daemon is not there, refuses us, or answered with a failure.
    """
    import remit_client.sync  # noqa: PLC0415 - zmq costs 26 ms
    from remit_client.errors import RemitError as ClientError  # noqa: PLC0415

    key = key or os.environ.get("REMIT_KEY") or None
    # A key knows where its daemon is; only a home that somebody named knows better.
    named = key is None or settings.origins["home"].kind != "default"
    try:
        with remit_client.sync.connect(
            home=str(settings.home) if named else None,
            endpoint=settings.endpoint or None,
            key=key,
        ) as remit:
            yield remit
    except ClientError as error:
        found = error.details.get("problems", ())
        problems = problems_in(found) if error.code == DefinitionError.code else ()
        if problems:
            raise DefinitionError(problems) from error
        raise with_code(error.code, error.message, error.hint, error.details) from error


def problems_in(
    found: Iterable[dict[str, Any]], severity: Literal["error", "warning"] = "error"
) -> list[Problem]:
    """Every problem that the daemon found in definitions, to be shown like our own."""
    return [
        Problem(
            Place(one["file"], one["line"], one["column"]),
            one["code"],
            one["message"],
            one["hint"],
            severity,
        )
        for one in found
    ]


class DaemonQuestions:
    """The questions that commands ask a running daemon."""

    def __init__(self, remit: "Client") -> None:
        self._remit = remit

    def explain(self, subject: str, event: str, session: str | None = None) -> Any:
        """Explain a decision about an agent, or else a profile."""
        data = {"event": event, "agent": subject}
        found = self._if_known("permission:explain", data, session=session)
        if found is not None and found["reason"] not in ("revoked", "unknown_agent"):
            return found
        data = {"event": event, "profile": subject}
        if found is None:
            return self._remit.call("permission:explain", data)
        return self._if_known("permission:explain", data) or found

    def who_can(self, event: str) -> dict[str, Any]:
        """The profiles and agents that may use an event, among those that the caller sees."""
        found: dict[str, Any] = self._remit.call("permission:who_can", {"event": event})
        return found

    def suggestion(self, event: str) -> str | None:
        """What may be meant by an event that does not exist; None when it does, or nobody tells."""
        found = self._remit.call("permission:explain", {"event": event})
        if found["reason"] != "unknown_event":
            return None
        return did_you_mean(event, [miss["event"] for miss in found["near_misses"]])

    def resolve(
        self, profile: str, variables: tuple[str, ...], max_effect: str | None
    ) -> dict[str, Any]:
        """What a profile grants, with values for its variables as `name=value`."""
        data: dict[str, Any] = {"profile": profile}
        if variables:
            declared = self._remit.call("composition:get", {"name": profile})["variables"]
            types = {one["name"]: one["type"] for one in declared}
            data["variables"] = variables_of(variables, types)
        data |= {"max_effect": max_effect} if max_effect else {}
        found: dict[str, Any] = self._remit.call("composition:resolve", data)
        return found

    def capability(self, name: str) -> dict[str, Any]:
        """What a capability gives."""
        found: dict[str, Any] = self._remit.call("capability:get", {"id": name})
        return found

    def revision(self) -> int:
        """The revision in force."""
        return int(self._remit.call("system:health")["revision"])

    def bill_of(self, subject: str) -> Any:
        """What the turns of an agent cost; None for what is no agent."""
        found = self._if_known("agent:status", {"agent_id": subject})
        return found["bill"] if found is not None else None

    def discover(self, subject: str, question: dict[str, Any]) -> Any:
        """What an agent, or else a profile, would find."""
        found = self._if_known("discovery:discover", question | {"agent": subject})
        if found is None:
            found = self._remit.call("discovery:discover", question | {"profile": subject})
        return found

    def cards(self) -> dict[str, Any]:
        """Every card that the caller may be given, page by page."""
        answer: dict[str, Any] = self._remit.call("awareness:cards")
        while answer["next"] is not None:
            page = self._remit.call("awareness:cards", {"after": answer["next"]})
            answer = page | {"items": answer["items"] + page["items"]}
        return answer

    def upstreams(self) -> dict[str, Any]:
        """Every upstream server that the caller may know of, page by page."""
        answer: dict[str, Any] = self._remit.call("upstream:list")
        while answer["next"] is not None:
            page = self._remit.call("upstream:list", {"after": answer["next"]})
            answer = answer | page | {"items": answer["items"] + page["items"]}
        if answer.pop("truncated", False):  # their tools did not fit into one message
            asked = ({"name": item["name"]} for item in answer["items"])
            pages = [self._remit.call("upstream:list", one) for one in asked]
            answer["items"] = [item for page in pages for item in page["items"]]
        return answer

    def check_upstream(self, name: str, *, timeout: float) -> dict[str, Any]:
        """Let the daemon ask an upstream server for its tools."""
        answer: dict[str, Any] = self._remit.call("upstream:check", {"name": name}, timeout=timeout)
        return answer

    def _if_known(self, event: str, data: dict[str, Any], session: str | None = None) -> Any:
        """The answer, or None when there is no such agent, or none that the caller may see."""
        from remit_client.errors import RemitError as ClientError  # noqa: PLC0415 - see connected

        try:
            return self._remit.call(event, data, session=session)
        except ClientError as error:
            if error.code not in ("unknown_agent", "denied"):
                raise
            return None


def all_agents(remit: "Client") -> list[dict[str, Any]]:
    """Every agent that the caller sees, page by page; itself alone when it may not list any."""
    from remit_client.errors import Denied  # noqa: PLC0415 - see connected

    found: list[dict[str, Any]] = []
    page: dict[str, Any] = {"next": ""}
    while page["next"] is not None:
        try:
            page = remit.call("agent:list", {"limit": 1000, "after": page["next"]})
        except Denied:
            me = remit.call("permission:check", {"event": "agent:list"})["agent"]
            return [{"agent_id": me, "parent": None, "profile": me}]
        found += page["items"]
    return found


@contextmanager
def daemon_answers(settings: Settings) -> Iterator[DaemonQuestions | None]:
    """The running daemon, or None when no daemon holds this home."""
    if running_pid(Home(settings.home)) is None:
        yield None
        return
    with connected(settings) as remit:
        yield DaemonQuestions(remit)
