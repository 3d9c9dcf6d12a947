"""Putting things that refer to each other in order, and naming the circles."""

from collections.abc import Iterable, Mapping

from remit.model.place import Place, Problem


def dependencies_first(
    graph: Mapping[str, Iterable[str]],
) -> tuple[list[str], list[list[str]]]:
    """Sort names so that each comes after what it refers to.

    References to names outside the graph are passed over. Without recursion, so that a long chain
    is no different from a short one.

    Returns:
        The order, and every circle that was met, each as a chain whose ends are the same name.
    """
    order: list[str] = []
    circles: list[list[str]] = []
    done: set[str] = set()
    for start in sorted(graph):
        if start not in done:
            _walk(start, graph, done, order, circles)
    return order, circles


def _walk(
    start: str,
    graph: Mapping[str, Iterable[str]],
    done: set[str],
    order: list[str],
    circles: list[list[str]],
) -> None:
    path = [start]
    on_path = {start}
    pending = [iter(sorted(graph[start]))]
    while path:
        following = next(pending[-1], None)
        if following is None:
            pending.pop()
            name = path.pop()
            on_path.discard(name)
            done.add(name)
            order.append(name)
        elif following in on_path:
            circles.append([*path[path.index(following) :], following])
        elif following in graph and following not in done:
            path.append(following)
            on_path.add(following)
            pending.append(iter(sorted(graph[following])))


def circle_problem(circle: list[str], place: Place, word: str) -> Problem:
    """The error that prints a circle as a chain."""
    chain = " → ".join(circle)
    return Problem(place, "cycle", f"{word} goes in a circle: {chain}", "cut one of these links")
