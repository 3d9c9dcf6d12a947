"""Whom a command asks about: an agent of the home, or a profile of the definitions."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from remit.app.workbench import Workbench
from remit.config.home import Home
from remit.config.settings_table import Settings
from remit.errors import NotFoundError
from remit.model.grant import Grant
from remit.model.place import Place, Problem
from remit.model.suggest import did_you_mean
from remit.policy.obstacles import Obstacle
from remit.policy.outside_names import server_of
from remit.runtime.explanation import explain_holder, explain_profile

_MOST_NAMED = 5


def is_agent(bench: Workbench, subject: str, *, files_first: bool = False) -> bool:
    """Tell whether a subject is an agent; a profile of that name counts first if asked for.

    Raises:
        NotFoundError: it is neither.
    """
    profiles = bench.catalogue.compositions
    if subject in bench.fleet and not (files_first and subject in profiles):
        return True
    if subject not in profiles:
        known = [*profiles, *bench.fleet.names()]
        also = ", and no agent of that name" if len(bench.fleet) else ""
        message = f"there is no profile {subject!r}{also}"
        raise NotFoundError(message, hint=did_you_mean(subject, known))
    return False


def grant_of_subject(bench: Workbench, subject: str, *, files_first: bool = False) -> Grant:
    """What an agent or a profile holds now.

    Raises:
        NotFoundError: there is neither.
    """
    if is_agent(bench, subject, files_first=files_first):
        return bench.fleet.grant(subject, bench.catalogue)
    return bench.fleet.with_made(bench.catalogue.grants[subject], bench.catalogue)


def explain_subject(
    bench: Workbench,
    settings: Settings,
    subject: str,
    event: str,
    session: str | None,
    *,
    files_first: bool,
) -> dict[str, Any]:
    """Explain a decision about an agent or a profile.

    Raises:
        NotFoundError: there is neither.
    """
    fleet, catalogue = bench.fleet, bench.catalogue
    outside = partial(_outside_obstacle, settings)
    if is_agent(bench, subject, files_first=files_first):
        return explain_holder(fleet, catalogue, subject, event, session=session, outside=outside)
    return explain_profile(fleet, catalogue, subject, event, outside=outside)


def _outside_obstacle(settings: Settings, event: str) -> Obstacle | None:
    if not server_of(event):
        return None
    from remit.config.upstream_file import inspect_upstreams, upstreams_path  # noqa: PLC0415
    from remit.config.upstream_pins import read_pins  # noqa: PLC0415 - only for outside tools
    from remit.runtime.outside_obstacle import outside_obstacle  # noqa: PLC0415

    upstreams = inspect_upstreams(upstreams_path(settings)).upstreams
    known = read_pins(Home(settings.home).upstreams, [one.name for one in upstreams]).known
    return outside_obstacle({one.name: (one, known.get(one.name)) for one in upstreams}, event)


def abandoned_agents(bench: Workbench) -> Iterator[Problem]:
    """Profiles that living agents run under, and that are not defined."""
    users: dict[str, list[str]] = {}
    for agent in bench.fleet.all():
        profile = agent.spec.profile
        if profile and profile not in bench.catalogue.compositions:
            users.setdefault(profile, []).append(agent.id)
    for profile, names in sorted(users.items()):
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        listed = ", ".join(names[:_MOST_NAMED]) + more
        yield Problem(
            Place(bench.files.folder or bench.files.catalogue),
            "profile_in_use",
            f"there is no profile {profile!r}, and living agents run under it: {listed}",
            "define it again, or end them: remit revoke AGENT; they keep what everybody has",
            severity="warning",
        )
