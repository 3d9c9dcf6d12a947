"""Compile everything operators wrote into one revision, or refuse it with every reason."""

from collections.abc import Mapping

import msgspec

from remit.errors import NotFoundError
from remit.model.capability import Ref
from remit.model.composition import Composition, Definitions, Scalar
from remit.model.event import Effect, PlacedEffect, least
from remit.model.grant import Grant
from remit.model.names import did_you_mean
from remit.model.place import REQUEST, DefinitionError, Problem, by_place
from remit.policy.catalogue import (
    Catalogue,
    check_capability_ref,
    compile_capabilities,
)
from remit.policy.configuration import missing_configs, written_problems
from remit.policy.layers import Layer, flatten
from remit.policy.lineage import bind, by_name, check_variables, declared_variables, lineages
from remit.policy.made import add_made
from remit.policy.resolve import make_grant
from remit.policy.review import Approval
from remit.policy.universe import Universe
from remit.policy.warnings import check_entries, grant_warnings

_ABOUT_CAPABILITIES = ("unknown_capability", "dead_denial", "dead_approval")
"""Errors that mean nothing while the capabilities themselves could not be read."""

Merged = dict[str, dict[str, Layer]]
"""Layers by the values of the variables under which they were merged: long chains merge once."""


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
    capabilities = add_made(capabilities, definitions.made, problems)
    compositions = by_name(definitions.compositions, problems)
    built_on = lineages(compositions, problems)
    catalogue = msgspec.structs.replace(
        capabilities,
        revision=revision,
        compositions=compositions,
        lineages=built_on,
        variables=declared_variables(line[-1] for line in built_on.values()),
        grants={},
    ).with_approvals(approvals)
    for composition in compositions.values():
        _check_composition(catalogue, composition, problems)
    errors = [problem for problem in problems if problem.is_error]
    errors += _list_errors(catalogue) if errors else _fill_grants(catalogue)
    if definitions.is_unread:
        errors = [problem for problem in errors if problem.code not in _ABOUT_CAPABILITIES]
    if errors:
        raise DefinitionError(sorted(set(errors), key=by_place))
    warnings = {problem for grant in catalogue.grants.values() for problem in grant.warnings}
    warnings.update(problems)
    return msgspec.structs.replace(catalogue, warnings=tuple(sorted(warnings, key=by_place)))


def _fill_grants(catalogue: Catalogue) -> list[Problem]:
    """Resolve every profile, so that a mistake in one is found before anybody holds it."""
    errors: list[Problem] = []
    merged: Merged = {}
    for name in catalogue.compositions:
        try:
            catalogue.grants[name] = _resolve(catalogue, name, {}, merged)
        except DefinitionError as error:
            errors += error.problems
    return errors


def _list_errors(catalogue: Catalogue) -> list[Problem]:
    """What is wrong with tool lists, beside the errors that keep the profiles from resolving."""
    errors: list[Problem] = []
    merged: Merged = {}
    for name in catalogue.compositions:
        try:
            layer_of(catalogue, name, {}, merged)
        except DefinitionError as error:
            errors += error.problems
    return errors


def _check_composition(
    catalogue: Catalogue, composition: Composition, problems: list[Problem]
) -> None:
    problems += check_variables(composition, catalogue.variables[composition.name])
    for part in composition.parts:
        for flag in part.flags:
            ref = Ref(flag.capability, flag.place)
            problems += check_capability_ref(ref, catalogue.capabilities, catalogue.names)
            problems += written_problems(catalogue, flag)


def layer_of(
    catalogue: Catalogue, profile: str, given: Mapping[str, Scalar], merged: Merged | None = None
) -> tuple[Layer, dict[str, Scalar]]:
    """A profile merged with all it builds on, and the values of its variables.

    Raises:
        NotFoundError: there is no such profile.
        InvalidDataError: a variable does not fit its declaration.
        DefinitionError: a value makes an entry of a tool list unreadable.
    """
    composition = _known(catalogue, profile)
    environment = bind(catalogue.variables[profile], given)
    problems: list[Problem] = []
    layers = {} if merged is None else merged.setdefault(repr(sorted(environment.items())), {})
    layer = flatten(catalogue.lineages[profile], environment, catalogue.names, problems, layers)
    problems += check_entries(catalogue, composition, layer)
    problems += (missing.problem for missing in missing_configs(catalogue, layer))
    errors = [problem for problem in problems if problem.is_error]
    if errors:
        raise DefinitionError(sorted(errors, key=by_place))
    return layer, environment


def _known(catalogue: Catalogue, profile: str) -> Composition:
    if profile not in catalogue.compositions:
        raise NotFoundError(
            f"there is no profile {profile!r}", hint=did_you_mean(profile, catalogue.compositions)
        )
    return catalogue.compositions[profile]


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
    _known(catalogue, profile)
    if not variables and max_effect is None:
        return catalogue.grants[profile]
    return _resolve(catalogue, profile, variables or {}, ceiling=max_effect)
