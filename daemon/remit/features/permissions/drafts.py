"""composition:* — drafts: what edited files would change.

A draft is compiled beside what is in force, and never put in force.

INVARIANT: what a caller hears of its draft does not depend on anything that is hidden from it. So
the draft of one who does not see everything may use only the names that its author sees; a hidden
name and one that does not exist are the same mistake. A profile or file that bears the name of a
hidden one stands beside it while it is tried, and does not take its place.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec

from remit.config.definitions.files import Files, edited, parse_definitions
from remit.errors import (
    DefinitionError,
    DeniedError,
    InvalidDataError,
    InvalidPatternError,
    Place,
    Problem,
)
from remit.features.permissions.reports import check_report
from remit.kernel.authority.plans import plan_between
from remit.kernel.authority.revision import compile_files
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.visibility import free_name, visible_capabilities, visible_profiles
from remit.model.composition import Composition
from remit.model.grant import Grant
from remit.model.launch import Template
from remit.model.names import Ref, ToolEntry
from remit.model.schema import FileText, Key, bounded
from remit.policy.catalogue import Catalogue, Definitions
from remit.policy.decide import confine
from remit.policy.plan import AgentChange
from remit.policy.plan import plan as make_plan

Texts = Annotated[dict[Key, FileText], msgspec.Meta(max_length=10_000)]
Removed = Annotated[list[Key], msgspec.Meta(max_length=10_000)]
_APART = "\0"
"""Ends the name of a profile of a draft while a hidden one bears that name."""
_NO_CATALOGUE = b"version: 1\ncapabilities: {}\n"


@event_handler("composition:validate", capability="catalogue_draft", effect="read")
def validate(
    ctx: Context,
    compositions: Texts | None = None,
    catalogue: FileText | None = None,
    remove: Removed | None = None,
) -> dict[str, Any]:
    """Check edited files against those in force, and put nothing in force.

    Args:
        compositions: edited composition files: their text by file name, as in 'reviewer.yaml'.
        catalogue: the edited capabilities.yaml.
        remove: composition files to leave out.
    """
    try:
        compiled = _compile_draft(ctx, _Draft(compositions or {}, catalogue, remove or []))
    except DefinitionError as error:
        return check_report(None, error.problems)
    if ctx.sees_everything:
        return check_report(compiled, compiled.warnings)
    counts = {
        "capabilities": len(visible_capabilities(ctx)),
        "profiles": len(visible_profiles(ctx)),
        "events": len(ctx.grant.events),
    }
    # Warnings speak of what a profile comes to hold through others, hidden or not.
    return check_report(compiled, []) | {"counts": counts}


@event_handler("composition:plan", capability="catalogue_draft", effect="read")
def plan(
    ctx: Context,
    compositions: Texts | None = None,
    catalogue: FileText | None = None,
    remove: Removed | None = None,
    complete: bool = False,  # noqa: FBT001, FBT002 - a field of the request
) -> dict[str, Any]:
    """Tell what edited files would grant and take away, and put nothing in force.

    Args:
        compositions: edited composition files: their text by file name, as in 'reviewer.yaml'.
        catalogue: the edited capabilities.yaml.
        remove: composition files to leave out.
        complete: whether all composition files that are not given are to be left out.
    """
    draft = _Draft(compositions or {}, catalogue, remove or [], complete)
    tried = _compile_draft(ctx, draft)
    fleet = ctx.kernel.authority.fleet
    if ctx.sees_everything:
        found = plan_between(fleet, ctx.catalogue, tried)
        return bounded(found.to_json(), "agents", "profiles")
    # Of profiles that are visible or new; what the caller does not hold itself stays hidden.
    hidden = ctx.catalogue.grants.keys() - visible_profiles(ctx).keys()
    found = plan_between(fleet, ctx.catalogue, tried, agents=fleet.subtree(ctx.principal.id))
    before = _confined(ctx, ctx.catalogue.grants, hidden)
    new = {k.removesuffix(_APART): v for k, v in tried.grants.items() if k not in hidden}
    after = _confined(ctx, new, frozenset())
    agents = {name: one for name, one in found.agent_changes.items() if _is_known(ctx, one)}
    return bounded(make_plan(before, after, agents=agents).to_json(), "agents", "profiles")


def _is_known(ctx: Context, one: AgentChange) -> bool:
    """Tell whether a change of an agent names nothing that the caller may not use."""
    change = one.change
    events = {*change.granted, *change.revoked, *change.tools_shown, *change.tools_hidden}
    tools = {*change.tools_granted, *change.tools_revoked}
    return events <= ctx.grant.events and tools <= ctx.grant.claude_tools


def _confined(ctx: Context, grants: Mapping[str, Grant], hidden: Set[str]) -> dict[str, Grant]:
    # Reviews and denials name what the caller may not use, and commands are the operator's affair.
    return {
        name: msgspec.structs.replace(
            confine(ctx.catalogue, grant, ctx.grant),
            pending_review=(),
            denied_events=(),
            denied_tools=frozenset(),
            launcher=None,
        )
        for name, grant in grants.items()
        if name not in hidden
    }


class _Draft(msgspec.Struct, frozen=True):
    """Edited files, by name, and the composition files to leave out."""

    compositions: dict[str, str] = {}
    catalogue: str | None = None
    remove: list[str] = []
    complete: bool = False
    """Every file in force that is not replaced is left out."""


def _compile_draft(ctx: Context, draft: _Draft) -> Catalogue:
    """Compile a draft together with the files in force that it does not replace.

    Raises:
        InvalidDataError: a file name is not a plain one.
        DeniedError: the draft edits what its author may not see.
        DefinitionError: it does not compile.
    """
    if draft.complete:
        present = (Path(name).name for name in ctx.kernel.authority.current.files.compositions)
        gone = sorted({*draft.remove, *present} - draft.compositions.keys())
        draft = msgspec.structs.replace(draft, remove=gone)
    if ctx.sees_everything:
        return _compile(ctx, draft)
    if draft.catalogue is not None:
        message = "the catalogue can be edited by those who see all of it"
        raise DeniedError(message, reason="no_grant", hint="ask an operator to run: remit plan")
    removable = _visible_files(ctx)
    draft = msgspec.structs.replace(draft, remove=[n for n in draft.remove if n in removable])
    _edit(ctx, draft)  # file names are looked at first
    problems = list(_own_problems(ctx, draft.compositions))
    if problems:
        raise DefinitionError(problems)
    files = _beside_hidden(ctx, draft.compositions)
    apart = {files.get(name, name): text for name, text in draft.compositions.items()}
    apart_draft = msgspec.structs.replace(draft, compositions=apart)
    try:
        return _compile(ctx, apart_draft, partial(_apart, ctx, apart))
    except DefinitionError as error:
        told = {apart: name for name, apart in files.items()}
        raise DefinitionError(_discreet(error.problems, apart_draft, told)) from None


def _beside_hidden(ctx: Context, sent: Iterable[str]) -> dict[str, str]:
    """Other names for sent files that bear the name of a file that the caller does not see."""
    taken = {Path(name).name for name in ctx.kernel.authority.current.files.compositions}
    hidden = taken - _visible_files(ctx)
    found = {}
    for name in hidden.intersection(sent):
        path = Path(name)
        stem = free_name(path.stem, lambda one: f"{one}.yaml" not in taken, most=200)
        found[name] = f"{stem}.yaml"
    return found


def _apart(ctx: Context, sent: Mapping[str, str], definitions: Definitions) -> Definitions:
    """Tell the profiles of a draft from hidden ones of their names."""
    hidden = ctx.catalogue.compositions.keys() - visible_profiles(ctx).keys()

    def is_sent(one: Composition) -> bool:
        return Path(one.place.file).name in sent

    clash = {one.name for one in definitions.compositions if is_sent(one)} & hidden

    def ref(one: Ref) -> Ref:
        return msgspec.structs.replace(one, name=one.name + _APART) if one.name in clash else one

    def renamed(one: Composition) -> Composition:
        if not is_sent(one):
            return one
        return msgspec.structs.replace(
            one,
            name=one.name + _APART if one.name in clash else one.name,
            extends=tuple(map(ref, one.extends)),
            mixins=tuple(msgspec.structs.replace(m, ref=ref(m.ref)) for m in one.mixins),
        )

    changed = tuple(map(renamed, definitions.compositions))
    return msgspec.structs.replace(definitions, compositions=changed)


def _compile(
    ctx: Context,
    draft: _Draft,
    revise: Callable[[Definitions], Definitions] = lambda definitions: definitions,
) -> Catalogue:
    return compile_files(
        _edit(ctx, draft),
        ctx.catalogue.universe,
        revision=ctx.catalogue.revision + 1,
        approvals=ctx.catalogue.approvals,
        made=ctx.kernel.authority.current.made,
        revise=revise,
    ).catalogue


def _edit(ctx: Context, draft: _Draft) -> Files:
    current = ctx.kernel.authority.current.files
    try:
        return edited(current, draft.catalogue, draft.compositions, draft.remove)
    except ValueError as error:
        raise InvalidDataError(str(error), details={"path": "$.compositions"}) from error


def _visible_files(ctx: Context) -> set[str]:
    compositions = ctx.catalogue.compositions
    return {Path(compositions[name].place.file).name for name in visible_profiles(ctx)}


def _own_problems(ctx: Context, sent: dict[str, str]) -> Iterator[Problem]:
    """What is wrong with the sent files by themselves, in the eyes of their author."""
    contents = {name: text.encode() for name, text in sent.items()} | {"catalogue": _NO_CATALOGUE}
    definitions = parse_definitions(Files("catalogue", sorted(sent), contents))
    yield from (problem for problem in definitions.problems if problem.is_error)
    profiles = {*visible_profiles(ctx), *(one.name for one in definitions.compositions)}
    capabilities = {*visible_capabilities(ctx), *ctx.grant.capabilities}
    names = {old for old, name in ctx.catalogue.names.items() if name in capabilities}
    for composition in definitions.compositions:
        yield from _unseen_names(composition, profiles, names)
        for part in composition.parts:
            yield from _unseen_events(ctx, (*part.allowed, *part.disallowed))


def _unseen_names(
    one: Composition, profiles: set[str], capabilities: set[str]
) -> Iterator[Problem]:
    for ref in (*one.extends, *(mixin.ref for mixin in one.mixins)):
        if ref.name not in profiles:
            message = f"there is no profile {ref.name!r} that you may see"
            yield Problem(ref.place, "unknown_profile", message)
    for flag in (flag for part in one.parts for flag in part.flags):
        if flag.capability not in capabilities:
            message = f"there is no capability {flag.capability!r} that you may see"
            yield Problem(flag.place, "unknown_capability", message)


def _unseen_events(ctx: Context, entries: tuple[Template, ...]) -> Iterator[Problem]:
    present = ctx.catalogue.universe.present
    for entry in entries:
        if entry.is_open:
            message = "a tool list with variables can be tried by those who see everything"
            yield Problem(entry.place, "invalid_definition", message)
            continue
        try:
            pattern = ToolEntry.parse(entry.text, entry.place).pattern
        except InvalidPatternError as error:
            yield Problem(entry.place, error.code, error.message, error.hint)
            continue
        if pattern and not any(map(present(pattern).covers, ctx.grant.events)):
            message = f"no event that you may use matches {entry.text!r}"
            yield Problem(entry.place, "dead_pattern", message)


def _discreet(problems: Sequence[Problem], draft: _Draft, told: Mapping[str, str]) -> list[Problem]:
    """The problems of the sent files without suggestions: these name what others have."""
    shown = []
    for problem in problems:
        path = Path(problem.place.file)
        if path.name in draft.compositions:
            file = str(path.with_name(told.get(path.name, path.name)))
            place = msgspec.structs.replace(problem.place, file=file)
            message = problem.message.replace(_APART, "")
            shown.append(msgspec.structs.replace(problem, place=place, message=message, hint=""))
    hidden = "the edit does not fit definitions that you may not see"
    return shown or [Problem(Place("definitions"), "invalid_definition", hidden)]
