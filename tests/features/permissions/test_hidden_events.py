"""An event that a caller may not use changes nothing that the caller can see.

Two daemons, alike but for one event and its capability, are asked the same. This is stronger than
looking for names in answers: counts, orders and suggestions must be the same as well.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from tests.fakes import Desk, built_in_handlers, starter_files

from remit.config.definitions.files import Files
from remit.kernel.dispatch.registry import Registry
from remit_client.wire import Answer

PROFILES = ["minimal", "observer", "executor", "orchestrator", "base_multi_agent_explicit"]
HIDDEN = "state:gets"  # near to what callers hold, so that it would show in suggestions
CAPABILITY = b"\n  state_reads:\n    description: Hidden\n    claude_tools: [Bash]\n"
PROFILE = b"name: observers\ncapabilities: {state_reads: true}\n"


@pytest.fixture(scope="module")
def plain() -> Desk:
    return Desk(built_in_handlers(), starter_files())


@pytest.fixture(scope="module")
def with_secret() -> Desk:
    registry = Registry()

    @registry.event_handler(HIDDEN, capability="state_reads", aliases=["state:get_old"])
    async def secret() -> None:
        """Be hidden."""

    files = starter_files()
    folder = files.folder
    contents = files.contents | {f"{folder}/observers.yaml": PROFILE}
    contents[files.catalogue] += CAPABILITY
    compositions = sorted([*files.compositions, f"{folder}/observers.yaml"])
    handlers = built_in_handlers() | registry.handlers()
    return Desk(handlers, Files(files.catalogue, compositions, contents, folder))


def questions() -> Iterator[tuple[str, dict[str, Any]]]:
    for level in ("summary", "namespace", "full"):
        for form in ("verbose", "compact", "ultra_compact", "mcp"):
            yield "system:discover", {"level": level, "format": form}
    for event in (HIDDEN, "state:get_old", "state:gett", "state:get", "state:listt", "no:such"):
        yield event, {"key": "a"}
        yield "system:help", {"event": event}
        yield "system:discover", {"event": event, "level": "full"}
        yield "permission:check", {"event": event}
        yield "permission:check_many", {"events": [event]}
        yield "permission:explain", {"event": event}
        yield "permission:explain", {"event": event, "profile": "minimal"}
        yield "capability:of_event", {"event": event}
    for event in ("system:health", "system:stats", "capability:list", "composition:list"):
        yield event, {}
    for name in ("state_reads", "state_reed", "state_read"):
        yield "capability:get", {"id": name}
    for name in ("observers", "obsever", "minimal"):
        yield "composition:get", {"name": name}
        yield "composition:resolve", {"profile": name}
        yield "permission:matrix", {"profiles": [name]}
        yield "permission:explain", {"event": "state:get", "profile": name}
    yield "permission:matrix", {}
    yield "composition:validate", {}
    yield "composition:plan", {}


def shown(answer: Answer) -> Any:
    """What the caller is told, without the number of the decision."""
    return msgspec.to_builtins([answer.ok, answer.data, answer.error])


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_hidden_event_changes_nothing_that_a_caller_can_see(
    plain: Desk, with_secret: Desk, profile: str
) -> None:
    for event, data in questions():
        before = shown(await plain.answer(profile, event, data))
        after = shown(await with_secret.answer(profile, event, data))
        assert after == before, (event, data)


async def test_the_operator_sees_the_difference(plain: Desk, with_secret: Desk) -> None:
    different = {
        event
        for event, data in questions()
        if shown(await plain.answer("operator", event, data))
        != shown(await with_secret.answer("operator", event, data))
    }
    assert {"system:discover", "capability:list", "composition:list", "system:help"} <= different
