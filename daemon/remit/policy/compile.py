"""Compile everything operators wrote into one revision, or refuse it with every reason."""

import itertools
from collections.abc import Iterable, Mapping

import msgspec

from remit.errors import REQUEST, DefinitionError, Problem, by_place
from remit.model.composition import Composition, Scalar, Variable
from remit.model.event import Universe
from remit.model.grant import Grant
from remit.model.limits import Effect, PlacedEffect, least
from remit.model.names import Ref, did_you_mean
from remit.policy.capabilities import (
    add_runtime_capabilities,
    check_capability_ref,
    circle_problem,
    compile_capabilities,
    dependencies_first,
)
from remit.policy.catalogue import Approval, Catalogue, Definitions
from remit.policy.checks import Merged, grant_warnings, layer_of, written_problems
from remit.policy.resolve import make_grant

_ABOUT_CAPABILITIES = ("unknown_capability", "dead_denial", "dead_approval")
"""Errors that mean nothing while the capabilities themselves could not be read."""


def compile_definitions(
    definitions: Definitions,
    universe: Universe,
    *,
    revision: int = 1,
    approvals: frozenset[Approval] = frozenset(),
) -> Catalogue:
    """Compile definitions against the events that exist.

    Raises:
        DefinitionError: something is wrong; it carries every problem, and nothing is in force.
    """
    problems = list(definitions.problems)
    capabilities = compile_capabilities(definitions.capabilities, universe, problems)
    capabilities = add_runtime_capabilities(
        capabilities, definitions.runtime_capabilities, problems
    )
    compositions = _by_name(definitions.compositions, problems)
    built_on = lineages(compositions, problems)
    catalogue = msgspec.structs.replace(
        capabilities,
        revision=revision,
        compositions=compositions,
        lineages=built_on,
        variables=_declared_variables(line[-1] for line in built_on.values()),
        grants={},
    ).with_approvals(approvals)
    for composition in compositions.values():
        _check_composition(catalogue, composition, problems)
    errors = [problem for problem in problems if problem.is_error]
    errors += _profile_errors(catalogue, fill=not errors)
    if definitions.is_unread:
        errors = [problem for problem in errors if problem.code not in _ABOUT_CAPABILITIES]
    if errors:
        raise DefinitionError(sorted(set(errors), key=by_place))
    warnings = {problem for grant in catalogue.grants.values() for problem in grant.warnings}
    warnings.update(problems)
    return msgspec.structs.replace(catalogue, warnings=tuple(sorted(warnings, key=by_place)))


def _profile_errors(catalogue: Catalogue, *, fill: bool) -> list[Problem]:
    """Resolve every profile, so that a mistake in one is found before anybody holds it.

    Without `fill` only tool lists are looked at: other errors keep the profiles from resolving.
    """
    errors: list[Problem] = []
    merged: Merged = {}
    for name in catalogue.compositions:
        try:
            if fill:
                catalogue.grants[name] = _resolve(catalogue, name, {}, merged)
            else:
                layer_of(catalogue, name, {}, merged)
        except DefinitionError as error:
            errors += error.problems
    return errors


def _check_composition(
    catalogue: Catalogue, composition: Composition, problems: list[Problem]
) -> None:
    problems += _check_variables(composition, catalogue.variables[composition.name])
    for part in composition.parts:
        for flag in part.flags:
            ref = Ref(flag.capability, flag.place)
            problems += check_capability_ref(ref, catalogue.capabilities, catalogue.names)
            problems += written_problems(catalogue, flag)


def _resolve(
    catalogue: Catalogue,
    profile: str,
    given: Mapping[str, Scalar],
    merged: Merged | None = None,
    ceiling: Effect | None = None,
) -> Grant:
    layer, environment = layer_of(catalogue, profile, given, merged)
    if ceiling:
        asked = PlacedEffect(ceiling, REQUEST)
        layer = msgspec.structs.replace(layer, max_effect=least([layer.max_effect, asked]))
    composition = catalogue.compositions[profile]
    grant = make_grant(catalogue, composition, layer, environment)
    warnings = grant_warnings(catalogue, composition, layer, grant)
    return msgspec.structs.replace(grant, warnings=tuple(sorted(set(warnings), key=by_place)))


def resolve(
    catalogue: Catalogue,
    profile: str,
    *,
    variables: Mapping[str, Scalar] | None = None,
    max_effect: Effect | None = None,
) -> Grant:
    """The grant of a profile in this revision.

    Raises:
        NotFoundError: there is no such profile.
        InvalidDataError: a variable does not fit its declaration.
        DefinitionError: a variable's value cannot stand where the profile uses it.
    """
    if not variables and max_effect is None:
        return catalogue.grant(profile)
    return _resolve(catalogue, profile, variables or {}, ceiling=max_effect)


def _by_name(
    compositions: Iterable[Composition], problems: list[Problem]
) -> dict[str, Composition]:
    """Index compositions; two of one name are an error that names both files."""
    found: dict[str, Composition] = {}
    for composition in sorted(compositions, key=lambda c: c.place):
        if composition.name in found:
            first = found[composition.name].place
            message = f"the profile {composition.name!r} is defined already at {first}"
            problems.append(Problem(composition.place, "duplicate_profile", message, "rename it"))
        else:
            found[composition.name] = composition
    return found


def lineages(
    compositions: Mapping[str, Composition], problems: list[Problem]
) -> dict[str, tuple[Composition, ...]]:
    """For each profile all it builds on, each after what it builds on itself, and then itself."""
    for composition in compositions.values():
        for ref in (*composition.extends, *(mixin.ref for mixin in composition.mixins)):
            if ref.name not in compositions:
                message = f"there is no profile {ref.name!r}"
                hint = did_you_mean(ref.name, compositions)
                problems.append(Problem(ref.place, "unknown_profile", message, hint))
    graph = {name: _references(composition) for name, composition in compositions.items()}
    order, circles = dependencies_first(graph)
    for circle in circles:
        place = compositions[circle[0]].place
        problems.append(circle_problem(circle, place, _link_kinds(circle, compositions)))
    return _collect(order, graph, compositions)


def _link_kinds(circle: list[str], compositions: Mapping[str, Composition]) -> str:
    """The keys that make a circle: `extends`, `mixins`, or both."""
    pairs = itertools.pairwise(circle)
    extending = [below in {ref.name for ref in compositions[name].extends} for name, below in pairs]
    if all(extending):
        return "extends"
    return "extends and mixins" if any(extending) else "mixins"


def _references(composition: Composition) -> list[str]:
    return [
        *(ref.name for ref in composition.extends),
        *(mixin.ref.name for mixin in composition.mixins),
    ]


def _collect(
    order: list[str], graph: Mapping[str, list[str]], compositions: Mapping[str, Composition]
) -> dict[str, tuple[Composition, ...]]:
    rank = {name: at for at, name in enumerate(order)}
    members: dict[str, frozenset[str]] = {}
    for name in order:
        below = (members.get(other, frozenset()) for other in graph[name])
        members[name] = frozenset((name,)).union(*below)
    return {
        name: tuple(compositions[other] for other in sorted(found, key=rank.__getitem__))
        for name, found in members.items()
    }


def _declared_variables(lineage: Iterable[Composition]) -> dict[str, dict[str, Variable]]:
    """The variables of each profile of a list that puts what a profile builds on before it.

    The nearest declaration counts: its own, else one of its mixins, else one of its parents. Among
    equals the place decides, so that the order of a list never does.
    """
    found: dict[str, dict[str, Variable]] = {}
    for composition in lineage:
        parents = [found[ref.name] for ref in composition.extends if ref.name in found]
        mixins = [found[m.ref.name] for m in composition.mixins if m.ref.name in found]
        own = {variable.name: variable for variable in composition.variables}
        found[composition.name] = _agreed(parents) | _agreed(mixins) | own
    return found


def _agreed(declarations: Iterable[Mapping[str, Variable]]) -> dict[str, Variable]:
    agreed: dict[str, Variable] = {}
    for variables in declarations:
        for name, variable in variables.items():
            agreed[name] = min(agreed.get(name, variable), variable, key=lambda v: v.place)
    return agreed


def _check_variables(composition: Composition, known: Mapping[str, Variable]) -> list[Problem]:
    """Defaults that do not fit their type, and conditions on variables that do not exist."""
    problems = []
    for variable in composition.variables:
        values = (variable.default, *variable.allowed_values)
        for value in values:
            complaint = variable.complaint(value)
            if complaint:
                problems.append(Problem(variable.place, "invalid_variable", complaint))
                break
    whens = [part.when for part in composition.parts]
    whens += [mixin.when for mixin in composition.mixins]
    for condition in (c for when in whens for c in when):
        if condition.variable not in known:
            message = f"there is no variable {condition.variable!r}"
            hint = did_you_mean(condition.variable, known) or "declare it under 'variables:'"
            problems.append(Problem(condition.place, "unknown_variable", message, hint))
        else:
            complaint = known[condition.variable].complaint(condition.value)
            if complaint:
                problems.append(Problem(condition.place, "invalid_condition", complaint))
    return problems
