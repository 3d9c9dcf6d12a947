"""What an agent may be given: a profile with its own changes, and never more than its parent."""

from collections.abc import Iterable

import msgspec

from remit.errors import InvalidDataError, NotFoundError
from remit.model.agent import AgentSpec
from remit.model.capability import Ref
from remit.model.composition import Composition, Flag, Part, Text
from remit.model.grant import Grant
from remit.model.place import Place, Problem
from remit.policy.catalogue import Catalogue
from remit.policy.flatten import flatten
from remit.policy.lineage import bind
from remit.policy.resolve import make_grant
from remit.policy.warnings import check_entries

_REQUEST = Place("request")
_CHANGES = "\0changes"
"""The name of an agent's own changes: no profile can have it."""


class Excess(msgspec.Struct, frozen=True):
    """What somebody would hold beyond the one who gives it."""

    events: tuple[str, ...]
    claude_tools: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Tell whether everything fits."""
        return not self.events and not self.claude_tools


def excess(grant: Grant, ceiling: Grant) -> Excess:
    """What a grant has beyond a ceiling, sorted."""
    return Excess(
        tuple(sorted(grant.events - ceiling.events)),
        tuple(sorted(grant.claude_tools - ceiling.claude_tools)),
    )


def resolve_agent(catalogue: Catalogue, spec: AgentSpec) -> Grant:
    """The grant of an agent by itself, before any ceiling.

    Without a profile it holds what is always included, and what its own changes add.

    Raises:
        NotFoundError: the profile is not there.
        InvalidDataError: a capability, tool or variable cannot be used.
    """
    if spec.profile and spec.profile not in catalogue.compositions:
        raise NotFoundError(f"there is no profile {spec.profile!r}")
    if spec.profile and not spec.is_changed:
        return catalogue.grants[spec.profile]
    for name in spec.capabilities:
        if name not in catalogue.names:
            path = f"$.capabilities.{name}"
            raise InvalidDataError(f"there is no capability {name!r}", details={"path": path})
    problems: list[Problem] = []
    environment = bind(catalogue.variables.get(spec.profile, {}), spec.variables)
    lineage = (*catalogue.lineages.get(spec.profile, ()), _changes(spec))
    layer = flatten(lineage, environment, catalogue.names, problems)
    named = catalogue.compositions.get(spec.profile) or Composition(name="", place=_REQUEST)
    problems += check_entries(catalogue, named, layer)
    errors = [problem for problem in problems if problem.is_error]
    if errors:
        raise InvalidDataError(errors[0].message, details={"path": "$.additional_tools"})
    return make_grant(catalogue, named, layer, environment)


def _changes(spec: AgentSpec) -> Composition:
    return Composition(
        name=_CHANGES,
        place=_REQUEST,
        extends=(Ref(spec.profile, _REQUEST),) if spec.profile else (),
        parts=(
            Part(
                flags=tuple(
                    Flag(name, on, _REQUEST) for name, on in sorted(spec.capabilities.items())
                ),
                allowed=_texts(spec.additional_tools),
                disallowed=_texts(spec.disallowed_tools),
                limits=spec.limits,
            ),
        ),
    )


def _texts(entries: Iterable[str]) -> tuple[Text, ...]:
    return tuple(Text(entry, _REQUEST) for entry in entries)
