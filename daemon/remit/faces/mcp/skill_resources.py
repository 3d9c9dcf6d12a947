"""Answers of `skill:list` in the shapes of MCP."""

from collections.abc import Mapping
from typing import Any

import mcp_types as types

from remit.faces.mcp.skill_texts import shown
from remit.faces.mcp.skill_uris import DIRECTORY, SKILL_FILE, Address, mime_type

Item = Mapping[str, Any]
"""A skill as `skill:list` tells it."""


def is_standard(item: Item) -> bool:
    """Tell whether a skill may stand in `skills/list`."""
    return not item["deviations"] and any(one["path"] == SKILL_FILE for one in item["files"])


def may_be_listed(item: Item) -> bool:
    """Tell whether the text of a skill may stand among the resources.

    By the standard a SKILL.md there is a whole skill. One that is not can be read, and is a prompt.
    """
    return bool(item["content"]) and (not item["deviations"] or item["content"] != SKILL_FILE)


def entry(item: Item) -> dict[str, Any]:
    """A skill as an entry of `skills/list`; every file stands in it."""
    files = [
        {
            "uri": Address(item["id"], one["path"]).uri(),
            "digest": f"sha256:{one['sha256']}",
            "size": one["size"],
        }
        for one in item["files"]
    ]
    uri = Address(item["id"], SKILL_FILE).uri()
    return {"uri": uri, "frontmatter": item["frontmatter"], "resources": files}


def resource(item: Item, path: str, size: int | None = None) -> types.Resource:
    """A file as a resource; the one with the text stands for the skill."""
    address = Address(item["id"], path)
    if path != item["content"]:
        name = path.rpartition("/")[2]
        return types.Resource(uri=address.uri(), name=name, mime_type=mime_type(path), size=size)
    name, description = (item["frontmatter"].get(key) for key in ("name", "description"))
    return types.Resource(
        uri=address.uri(),
        name=name if isinstance(name, str) and name else address.name,
        title=shown(item["title"]),
        description=shown(description if isinstance(description, str) else item["description"]),
        mime_type=mime_type(path),
        size=size,
    )


def children(item: Item, path: str) -> list[types.Resource]:
    """What lies directly in a folder; nothing when there is no such folder."""
    start = f"{path}/" if path else ""
    found: dict[str, types.Resource] = {}
    for file in item["files"]:
        if not file["path"].startswith(start):
            continue
        name, _, below = file["path"].removeprefix(start).partition("/")
        if below:
            uri = Address(item["id"], start + name).uri()
            found[name] = types.Resource(uri=uri, name=name, mime_type=DIRECTORY)
        else:
            found[name] = resource(item, file["path"], file["size"])
    return [found[name] for name in sorted(found)]
