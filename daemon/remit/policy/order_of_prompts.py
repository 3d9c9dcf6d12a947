"""In which order the capabilities of an agent come: what one needs before it, else as chosen."""

from collections.abc import Iterable

import msgspec

from remit.policy.catalogue import Catalogue


class Order(msgspec.Struct, frozen=True):
    """The capabilities that an agent has, and how it came by them."""

    resolved_ids: tuple[str, ...]
    """All of them: what is always included, then each chosen one behind what it requires."""
    user_selected: tuple[str, ...]
    added_as_dependencies: tuple[str, ...]
    always_included: tuple[str, ...]


def order_of(catalogue: Catalogue, chosen: Iterable[str], held: Iterable[str]) -> Order:
    """Order what is held.

    Args:
        catalogue: the revision.
        chosen: the ids that were switched on, by priority.
        held: the ids that count; whatever is not among them is left out.
    """
    active = set(held)
    selected = list(dict.fromkeys(chosen))
    visited: dict[str, None] = {}
    for root in (*catalogue.base, *selected):
        _visit(catalogue, root, visited)
    # What is required by something that was taken away may still be held.
    resolved = [name for name in visited if name in active]
    selected = [name for name in selected if name in active]
    base = [name for name in catalogue.base if name in active]
    known = {*selected, *base}
    added = [name for name in resolved if name not in known]
    return Order(tuple(resolved), tuple(selected), tuple(added), tuple(base))


def _visit(catalogue: Catalogue, root: str, visited: dict[str, None]) -> None:
    """Add a capability behind all it requires, without recursion; circles were refused before."""
    waiting = [root]
    while waiting:
        name = waiting[-1]
        required = [catalogue.names[r.name] for r in catalogue.capabilities[name].requires]
        missing = [one for one in required if one not in visited]
        if missing and name not in visited:
            waiting.append(missing[0])
            continue
        visited.setdefault(name)
        waiting.pop()
