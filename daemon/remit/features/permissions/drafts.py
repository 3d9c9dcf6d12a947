"""Edits that a caller wants tried: compiled beside what is in force, and never put in force.

INVARIANT: what a caller hears of its draft does not depend on anything that is hidden from it. So
the draft of one who does not see everything may use only the names that its author sees; a hidden
name and one that does not exist are the same mistake. A profile or file that bears the name of a
hidden one stands beside it while it is tried, and does not take its place.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from remit.config.definitions.files import Files, edited, parse_definitions
from remit.errors import DeniedError, InvalidDataError, InvalidPatternError
from remit.kernel.authority.revision import compile_files
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.visibility import free_name, visible_capabilities, visible_profiles
from remit.model.capability import Ref
from remit.model.composition import Composition, Definitions, Template, ToolEntry
from remit.model.place import DefinitionError, Place, Problem
from remit.policy.catalogue import Catalogue

_APART = "\0"
"""What the name of a profile of a draft ends with while a hidden one bears that name."""
_NO_CATALOGUE = b"version: 1\ncapabilities: {}\n"


class Draft(msgspec.Struct, frozen=True):
    """Edited files, by name, and the composition files to leave out."""

    compositions: dict[str, str] = {}
    catalogue: str | None = None
    remove: list[str] = []
    complete: bool = False
    """Every file in force that is not replaced is left out."""


def compile_draft(ctx: Context, draft: Draft) -> Catalogue:
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


def shown_name(profile: str) -> str:
    """The name of a profile as its draft says it."""
    return profile.removesuffix(_APART)


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
    draft: Draft,
    revise: Callable[[Definitions], Definitions] = lambda definitions: definitions,
) -> Catalogue:
    number = ctx.catalogue.revision + 1
    current = ctx.kernel.authority.current
    return compile_files(
        _edit(ctx, draft),
        ctx.catalogue.universe,
        revision=number,
        approvals=ctx.catalogue.approvals,
        made=current.made,
        revise=revise,
    ).catalogue


def _edit(ctx: Context, draft: Draft) -> Files:
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
    contents = {name: text.encode() for name, text in sent.items()}
    alone = Files("catalogue", sorted(sent), contents | {"catalogue": _NO_CATALOGUE})
    definitions = parse_definitions(alone)
    yield from (problem for problem in definitions.problems if problem.is_error)
    profiles = {*visible_profiles(ctx), *(each.name for each in definitions.compositions)}
    capabilities = {*visible_capabilities(ctx), *ctx.grant.capabilities}
    names = {old for old, name in ctx.catalogue.names.items() if name in capabilities}
    for composition in definitions.compositions:
        yield from _unseen_names(composition, profiles, names)
        for part in composition.parts:
            yield from _unseen_events(ctx, (*part.allowed, *part.disallowed))


def _unseen_names(
    composition: Composition, profiles: set[str], capabilities: set[str]
) -> Iterator[Problem]:
    for ref in (*composition.extends, *(mixin.ref for mixin in composition.mixins)):
        if ref.name not in profiles:
            message = f"there is no profile {ref.name!r} that you may see"
            yield Problem(ref.place, "unknown_profile", message)
    for flag in (flag for part in composition.parts for flag in part.flags):
        if flag.capability not in capabilities:
            message = f"there is no capability {flag.capability!r} that you may see"
            yield Problem(flag.place, "unknown_capability", message)


def _unseen_events(ctx: Context, entries: tuple[Template, ...]) -> Iterator[Problem]:
    present = ctx.catalogue.universe.present
    for entry in entries:
        if "{{" in entry.text:
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


def _discreet(
    problems: tuple[Problem, ...], draft: Draft, told: Mapping[str, str]
) -> list[Problem]:
    """The problems of the sent files without suggestions: these name what others have."""
    shown = []
    for problem in problems:
        path = Path(problem.place.file)
        if path.name in draft.compositions:
            file = str(path.with_name(told.get(path.name, path.name)))
            place = msgspec.structs.replace(problem.place, file=file)
            message = problem.message.replace(_APART, "")
            shown.append(msgspec.structs.replace(problem, place=place, message=message, hint=""))
    message = "the edit does not fit definitions that you may not see"
    return shown or [Problem(Place("definitions"), "invalid_definition", message)]
