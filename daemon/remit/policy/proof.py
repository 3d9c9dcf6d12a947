"""The proof that a rewritten profile grants what it granted before, to everybody it touches."""

from collections.abc import Iterable
from itertools import islice, product
from typing import Any

import msgspec

from remit.errors import ConflictError
from remit.model.composition import Composition, Condition, Scalar
from remit.model.definitions import Definitions
from remit.model.place import DefinitionError
from remit.policy.catalogue import Catalogue
from remit.policy.compiler import compile_definitions, resolve
from remit.policy.kin import Kin
from remit.policy.plan import compare
from remit.policy.universe import Universe

MAX_ENVIRONMENTS = 64


def compile_beside(
    catalogue: Catalogue, compositions: Iterable[Composition], universe: Universe
) -> Catalogue:
    """Compile profiles with the capabilities and approvals of a catalogue.

    Without any `max_effect`: what is the same without it is the same under it, whatever the events
    do that are written down already and do not exist yet.
    """
    return compile_definitions(
        Definitions(tuple(catalogue.capabilities.values()), tuple(map(_unlimited, compositions))),
        universe,
        revision=catalogue.revision,
        approvals=catalogue.approvals,
    )


def _unlimited(composition: Composition) -> Composition:
    parts = (msgspec.structs.replace(part, max_effect=None) for part in composition.parts)
    return msgspec.structs.replace(composition, parts=tuple(parts))


def prove_same(
    catalogue: Catalogue, kin: Kin, written: Universe, migrated: Composition
) -> dict[str, list[Any]]:
    """Compare before and after for everybody; answers the limits that change.

    Raises:
        ConflictError: somebody would be granted something else than before.
    """
    name = migrated.name
    everyone = [migrated if c.name == name else c for c in kin.everyone]
    changed: dict[str, list[Any]] = {}
    for universe in (written, catalogue.universe):
        before = compile_beside(catalogue, kin.everyone, universe)
        try:
            after = compile_beside(catalogue, everyone, universe)
        except DefinitionError as error:
            raise _failure(name, name, error.problems[0].message) from error
        for profile in (name, *kin.dependents):
            _compare(before, after, profile, name)
        changed = compare(before.grants[name], after.grants[name]).limits_changed
    return changed


def _compare(before: Catalogue, after: Catalogue, profile: str, migrated: str) -> None:
    for variables in _environments(before, profile):
        try:
            old = resolve(before, profile, variables=variables)
        except DefinitionError:
            continue  # a value that the profile refuses, before and after
        new = resolve(after, profile, variables=variables)
        difference = sorted(
            (old.events ^ new.events)
            | (old.exposed ^ new.exposed)
            | (old.claude_tools ^ new.claude_tools)
        )
        if difference:
            raise _failure(migrated, profile, f"{', '.join(difference[:5])} would change")


def _failure(migrated: str, profile: str, why: str) -> ConflictError:
    return ConflictError(
        f"no equal set of capabilities was found for {migrated!r}: in {profile!r} {why}",
        hint="leave the explicit list as it is, or split the profile",
    )


def _environments(catalogue: Catalogue, profile: str) -> list[dict[str, Scalar]]:
    """Values worth trying: the defaults, and all that conditions and declarations name."""
    lineage = catalogue.lineages[profile]
    values: dict[str, dict[Scalar, None]] = {}
    for name, variable in sorted(catalogue.variables[profile].items()):
        both: tuple[Scalar, ...] = (True, False) if variable.type == "boolean" else ()
        values[name] = dict.fromkeys((variable.default, *variable.allowed_values, *both))
    for condition in _conditions(lineage):
        values.setdefault(condition.variable, {})[condition.value] = None
    combinations = product(*values.values())
    return [
        dict(zip(values, combination, strict=True))
        for combination in islice(combinations, MAX_ENVIRONMENTS)
    ]


def _conditions(lineage: Iterable[Composition]) -> list[Condition]:
    return [
        condition
        for composition in lineage
        for when in (
            *(part.when for part in composition.parts),
            *(mixin.when for mixin in composition.mixins),
        )
        for condition in when
    ]
