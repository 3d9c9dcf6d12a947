"""The one rule for names in requests: what a caller may not see is as if it did not exist.

A profile, agent, capability, session, conversation, review, card, skill, upstream server,
extension, key or token is looked up among those that the caller may see (`view.py`, `descent.py`),
never among all. So the code, message, hint and details of the answer are the same for one that is
hidden and one that was never there; only the name that was asked for is in them. Where a name is
to be given, one that is taken out of sight is no conflict: the daemon gives one that is free.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from remit.errors import NotFoundError, RemitError
from remit.model.names import did_you_mean

Found = TypeVar("Found")


def look_up(
    name: str,
    seen: Mapping[str, Found],
    kind: str,
    *,
    purpose: str = "",
    hint: str = "",
    error: type[RemitError] = NotFoundError,
) -> Found:
    """What a caller named, of all that it may see.

    Args:
        name: what was asked for.
        seen: everything of that kind that the caller may see, by name.
        kind: what it is called, as in 'profile'.
        purpose: what the caller wants with it, as in 'ask about'.
        hint: what to do when no name is near.
        error: the kind of failure.

    Raises:
        RemitError: there is none of that name, or it is not for the caller.
    """
    if name not in seen:
        raise unseen(name, seen, kind, purpose=purpose, hint=hint, error=error)
    return seen[name]


def unseen(  # noqa: PLR0913 - as above
    name: str,
    seen: Iterable[str],
    kind: str,
    *,
    purpose: str = "",
    hint: str = "",
    details: Mapping[str, Any] | None = None,
    error: type[RemitError] = NotFoundError,
) -> RemitError:
    """The one answer for what does not exist and what the caller may not see."""
    whose = f" that you may {purpose}" if purpose else ""
    article = f"{kind} " if kind else ""
    return error(
        f"there is no {article}{name!r}{whose}",
        hint=did_you_mean(name, seen) or hint,
        details=details,
    )


def free_name(asked: str, is_free: Callable[[str], bool], *, most: int) -> str:
    """A free name made of one that is taken where the caller does not see it."""
    # Commands without a daemon list the events here, and must not load libzmq and OpenSSL.
    from remit.kernel.authority.credentials import name_suffix  # noqa: PLC0415

    while True:
        suffix = f"-{name_suffix()}"
        name = f"{asked[: most - len(suffix)]}{suffix}"
        if is_free(name):
            return name
