"""What a profile builds on, and the variables it ends up with."""

import itertools
from collections.abc import Iterable, Mapping

from remit.errors import InvalidDataError
from remit.model.composition import Composition, Scalar, Variable
from remit.model.names import did_you_mean
from remit.model.place import Problem
from remit.model.schema import matches
from remit.policy.catalogue import circle_problem, dependencies_first
from remit.policy.layers import same_value

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def by_name(compositions: Iterable[Composition], problems: list[Problem]) -> dict[str, Composition]:
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


def declared_variables(lineage: Iterable[Composition]) -> dict[str, dict[str, Variable]]:
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


def check_variables(composition: Composition, known: Mapping[str, Variable]) -> list[Problem]:
    """Defaults that do not fit their type, and conditions on variables that do not exist."""
    problems = []
    for variable in composition.variables:
        values = (variable.default, *variable.allowed_values)
        for value in values:
            complaint = _complaint(variable, value)
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
            complaint = _complaint(known[condition.variable], condition.value)
            if complaint:
                problems.append(Problem(condition.place, "invalid_condition", complaint))
    return problems


def bind(variables: Mapping[str, Variable], given: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The value of every variable.

    Raises:
        InvalidDataError: a given name or value does not fit the declarations.
    """
    for name, value in given.items():
        if name not in variables:
            raise InvalidDataError(
                f"this profile has no variable {name!r}",
                hint=did_you_mean(name, variables),
                details={"path": f"variables.{name}"},
            )
        complaint = _complaint(variables[name], value)
        if complaint:
            raise InvalidDataError(complaint, details={"path": f"variables.{name}"})
    return {name: given.get(name, variable.default) for name, variable in variables.items()}


def _complaint(variable: Variable, value: Scalar) -> str:
    fits = isinstance(value, _TYPES[variable.type])
    if variable.type != "boolean" and isinstance(value, bool):
        fits = False
    if not fits:
        return f"{value!r} is not a value of type {variable.type} for {variable.name!r}"
    allowed = variable.allowed_values
    if allowed and not any(same_value(value, one) for one in allowed):
        choices = ", ".join(map(str, allowed))
        return f"{value!r} is not allowed for {variable.name!r}; allowed: {choices}"
    if variable.pattern and not matches(variable.pattern, str(value)):
        wanted = f"all of it must match {variable.pattern}"
        return f"{value!r} is not allowed for {variable.name!r}; {wanted}"
    return ""
