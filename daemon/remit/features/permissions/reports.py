"""The shapes in which questions about definitions are answered, by every face alike."""

from collections.abc import Iterable
from typing import Any

from remit.errors import Problem
from remit.model.capability import Capability
from remit.model.composition import Composition
from remit.model.grant import Grant
from remit.policy.catalogue import Catalogue
from remit.policy.queries import said


def grant_report(grant: Grant) -> dict[str, Any]:
    """What a profile grants."""
    return {
        "profile": grant.profile,
        "revision": grant.revision,
        "capabilities": list(grant.capabilities),
        "allowed_events": sorted(grant.events),
        "denied_events": list(grant.denied_events),
        "approval_required": sorted(grant.approval_required),
        "allowed_claude_tools": sorted(grant.claude_tools),
        "denied_claude_tools": sorted(grant.denied_tools),
        **said(max_effect=grant.max_effect),
        "exposure": grant.exposure,
        "pinned": sorted(grant.pinned),
        **said(trust=grant.trusted or None),
        "limits": grant.limits.to_json(),
        "pending_review": list(grant.pending_review),
        "variables": dict(grant.variables),
        "prompt": grant.prompt,
        "warnings": [problem.to_json() for problem in grant.warnings],
    }


def remarks(definition: Capability | Composition) -> dict[str, Any]:
    """What the author of a definition says about it beside what it gives."""
    return said(
        version=definition.version,
        author=definition.author,
        metadata=definition.metadata or None,
    )


def check_report(catalogue: Catalogue | None, problems: Iterable[Problem]) -> dict[str, Any]:
    """What is wrong with a set of definitions; without a catalogue they did not compile."""
    found = list(problems)
    errors = [problem.to_json() for problem in found if problem.is_error]
    counts = {"capabilities": 0, "profiles": 0, "events": 0}
    if catalogue is not None:
        counts = {
            "capabilities": len(catalogue.capabilities),
            "profiles": len(catalogue.compositions),
            "events": len(catalogue.universe.names),
        }
    return {
        "ok": not errors,
        "errors": errors,
        "warnings": [problem.to_json() for problem in found if not problem.is_error],
        "counts": counts,
    }
