"""Files that capabilities mount: which are in each other's way, and which a grant brings."""

from collections.abc import Iterable, Mapping

from remit.model.capability import Capability, Mount
from remit.model.grant import Grant
from remit.model.paths import parents
from remit.model.place import Problem


def mount_conflicts(definitions: Iterable[Capability]) -> list[Problem]:
    """Mounts that nobody could hold together: of one path, or one below the other."""
    ordered = sorted(definitions, key=lambda one: one.id)
    first: dict[str, str] = {}
    for definition in reversed(ordered):
        first.update((mount.path, definition.id) for mount in definition.mounts)
    problems = []
    seen: set[str] = set()
    for definition in ordered:
        for mount in definition.mounts:
            above = [path for path in parents(mount.path) if path in first]
            if mount.path in seen:
                above.append(mount.path)
            seen.add(mount.path)
            problems += [
                Problem(
                    definition.place,
                    "mount_conflict",
                    f"{mount.path!r} cannot be mounted: {first[path]!r} mounts {path!r}",
                    "choose another path",
                )
                for path in above
            ]
    return problems


def mounts_of(grant: Grant, capabilities: Mapping[str, Capability]) -> dict[str, Mount]:
    """The files that come with what a grant holds, by path."""
    found: dict[str, Mount] = {}
    for name in grant.capabilities:
        definition = capabilities.get(name)
        if definition is not None and definition.is_grantable:
            for mount in definition.mounts:
                found.setdefault(mount.path, mount)
    return found
