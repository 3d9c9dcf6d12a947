"""Edits that a caller wants tried: compiled beside what is in force, and never put in force.

INVARIANT: what a caller hears of its draft does not depend on anything that is hidden from it. So
the draft of one who does not see everything may use only the names that its author sees; a hidden
name and one that does not exist are the same mistake.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from remit.config.definitions import parse_definitions
from remit.config.files import Files, edited
from remit.errors import DeniedError, InvalidDataError, InvalidPatternError
from remit.model.composition import Composition, Text
from remit.model.place import DefinitionError, Place, Problem
from remit.model.tool import ToolEntry
from remit.policy.catalogue import Catalogue
from remit.runtime.authority import compile_files
from remit.runtime.context import Context
from remit.runtime.view import visible_capabilities, visible_profiles

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
        present = (Path(name).name for name in ctx.services.authority.current.files.compositions)
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
    try:
        return _compile(ctx, draft)
    except DefinitionError as error:
        raise DefinitionError(_discreet(error.problems, draft)) from None


def _compile(ctx: Context, draft: Draft) -> Catalogue:
    number = ctx.catalogue.revision + 1
    current = ctx.services.authority.current
    return compile_files(
        _edit(ctx, draft),
        ctx.catalogue.universe,
        revision=number,
        approvals=ctx.catalogue.approvals,
        made=current.made,
    ).catalogue


def _edit(ctx: Context, draft: Draft) -> Files:
    current = ctx.services.authority.current.files
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


def _unseen_events(ctx: Context, entries: tuple[Text, ...]) -> Iterator[Problem]:
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


def _discreet(problems: tuple[Problem, ...], draft: Draft) -> list[Problem]:
    """The problems of the sent files without suggestions: these name what others have."""
    shown = [
        msgspec.structs.replace(problem, hint="")
        for problem in problems
        if Path(problem.place.file).name in draft.compositions
    ]
    message = "the edit does not fit definitions that you may not see"
    return shown or [Problem(Place("definitions"), "invalid_definition", message)]
