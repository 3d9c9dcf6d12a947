"""skill:* — the skills that a caller may see, and the files that belong to them.

Everybody sees the skills that discovery would show, by the same rule and no others.
"""

from functools import partial
from typing import Annotated, Any

import msgspec
from anyio import to_thread

from remit.errors import NotFoundError
from remit.features.skills.skill_file import SKILL_FILE
from remit.features.skills.views import SkillCatalogue, describe_page, read_file
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.visibility import unseen
from remit.model.descriptor import Descriptor
from remit.model.names import did_you_mean
from remit.model.schema import PAGE_LIMIT, PAGE_MAX
from remit.text.words import estimate_tokens

PREFIX = "skill:"
Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]
Name = Annotated[str, msgspec.Meta(max_length=1_024)]


@event_handler("skill:list", capability="skills", effect="read")
async def list_(
    ctx: Context,
    skills: SkillCatalogue,
    id: Name | None = None,  # noqa: A002 - as in discovery:describe
    *,
    files: bool = True,
    limit: Limit = PAGE_LIMIT,
    after: Name = "",
) -> dict[str, Any]:
    """List the skills that you may see, with their files.

    Args:
        id: only this one; its name will do.
        files: false leaves the files out, which is quicker.
        limit: how many at the most.
        after: the `next` of the page before.
    """
    seen = await skills.visible(ctx.grant, everything=ctx.sees_everything)
    asked = seen if id is None else {(one := _named(id, seen)).id: one}
    remaining = [asked[name] for name in sorted(asked) if name > after]
    describe = partial(describe_page, remaining[:limit], skills.reader, files=files)
    items = await to_thread.run_sync(describe)
    more = len(items) < len(remaining)
    return {
        "items": items,
        "total": len(asked),
        "next": items[-1]["id"] if more else None,
        "revision": ctx.catalogue.revision,
    }


@event_handler("skill:read", capability="skills", effect="read")
async def read(
    ctx: Context,
    skills: SkillCatalogue,
    id: Name,  # noqa: A002 - as above
    path: Name = SKILL_FILE,
) -> dict[str, Any]:
    """Read a file of a skill, as it is.

    Args:
        id: the skill, as in 'skill:git'; its name will do.
        path: the file, from the folder of the skill on, as in `skill:list`.
    """
    skill = _named(id, await skills.visible(ctx.grant, everything=ctx.sees_everything))
    reader = skills.reader
    found = await to_thread.run_sync(read_file, skill, path, reader)
    if found is None:
        files = await to_thread.run_sync(reader.files, skill.source)
        hint = did_you_mean(path, [one.path for one in files.files])
        raise NotFoundError(f"{skill.id!r} has no file {path!r}", hint=hint)
    ctx.kernel.bills.charge(ctx.principal.id, "skills", estimate_tokens(found["content"]))
    return found | {"revision": ctx.catalogue.revision}


def _named(name: str, seen: dict[str, Descriptor]) -> Descriptor:
    found = seen.get(name if name.startswith(PREFIX) else f"{PREFIX}{name}")
    if found is None:
        raise unseen(name, seen, "skill", purpose="use")
    return found
