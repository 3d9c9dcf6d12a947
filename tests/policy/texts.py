"""Definitions as operators write them: YAML texts in, a catalogue or its problems out."""

from collections.abc import Iterable

import pytest

from remit.config.definitions.files import Files, parse_definitions
from remit.errors import DefinitionError, Problem
from remit.model.event import EventSpec, Universe, make_universe
from remit.model.grant import Grant
from remit.model.names import parse_event_name
from remit.policy.catalogue import Approval, Catalogue
from remit.policy.compile import compile_definitions

EVENTS = (
    "system:health",
    "state:get",
    "state:list",
    "state:set",
    "state:delete",
    "agent:spawn",
    "agent:terminate",
    "agent:send_message",
    "message:publish",
    "web:fetch",
)

CAPABILITIES = """
capabilities:
  base:
    description: What every agent needs
    event_patterns: [system:health]
    always_included: true
  state_read:
    description: Read shared state
    event_patterns: [state:get, state:list]
  state_write:
    description: Change shared state
    event_patterns: [state:set, state:delete]
    requires: [state_read]
  messaging:
    description: Talk to others
    event_patterns: ["message:*", agent:send_message]
  spawning:
    description: Create children
    event_patterns: [agent:spawn, agent:terminate]
    requires: [messaging]
    resource_limits: {max_children: 5, max_depth: 2}
  network:
    description: Reach the outside world
    event_patterns: [web:fetch]
    claude_tools: [WebFetch]
    security_review_required: true
"""


def event(name: str, **flags: object) -> EventSpec:
    """An event with the flags of its handler."""
    return EventSpec(name=parse_event_name(name), **flags)  # type: ignore[arg-type]


def universe_of(events: Iterable[str | EventSpec]) -> Universe:
    """The universe of bare names and of events with flags."""
    return make_universe(one if isinstance(one, EventSpec) else event(one) for one in events)


def files_of(capabilities: str, *profiles: str) -> Files:
    """Texts as files: capabilities.yaml, p0.yaml, p1.yaml and so on."""
    files = Files(catalogue="capabilities.yaml")
    files.contents["capabilities.yaml"] = capabilities.encode()
    for number, text in enumerate(profiles):
        files.compositions.append(f"p{number}.yaml")
        files.contents[f"p{number}.yaml"] = text.encode()
    return files


def compiled(
    capabilities: str,
    *profiles: str,
    events: Iterable[str | EventSpec] = EVENTS,
    approvals: frozenset[Approval] = frozenset(),
) -> Catalogue:
    """Compile texts that are in order."""
    definitions = parse_definitions(files_of(capabilities, *profiles))
    return compile_definitions(definitions, universe_of(events), approvals=approvals)


def granted(*profiles: str, capabilities: str = CAPABILITIES) -> Grant:
    """The grant of the last profile."""
    catalogue = compiled(capabilities, *profiles)
    return next(
        grant
        for name, grant in catalogue.grants.items()
        if catalogue.compositions[name].place.file == f"p{len(profiles) - 1}.yaml"
    )


def own(grant: Grant) -> set[str]:
    """What a grant holds beyond the base."""
    return set(grant.events) - {"system:health"}


def refused(
    capabilities: str, *profiles: str, events: Iterable[str | EventSpec] = EVENTS
) -> tuple[Problem, ...]:
    """Every problem of texts that do not load, with the line for the caret."""
    files = files_of(capabilities, *profiles)
    with pytest.raises(DefinitionError) as caught:
        compile_definitions(parse_definitions(files), universe_of(events))
    return files.illustrate(caught.value.problems)


def told(problems: Iterable[Problem]) -> list[str]:
    """Each problem as `file:line:column code`."""
    return [f"{problem.place} {problem.code}" for problem in problems]


def underlined(problem: Problem) -> str:
    """The text above the carets of a problem."""
    _, source, carets, *_ = str(problem).split("\n")
    return source[carets.index("^") : carets.rindex("^") + 1]
