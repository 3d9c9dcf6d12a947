"""Skills over MCP: resources, prompts, and the extension that lists skills with their digests.

Everything is a translation of `skill:list` and `skill:read`, asked as the caller each time. What
those do not show is answered like what does not exist.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NoReturn

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from remit.config.strict.frontmatter import split_frontmatter
from remit.errors import RemitError
from remit.faces.mcp.listeners import SKILL_LIST, Anything, Listeners
from remit.faces.mcp.skill_shapes import (
    SKILL_FILE,
    TEMPLATE,
    Item,
    SkillAddress,
    children,
    entry,
    id_of,
    is_standard,
    may_be_listed,
    mime_type,
    parse,
    prompt_text,
    resource,
    shown,
)
from remit.faces.mcp.tools import McpCaller
from remit.kernel.dispatch.own_requests import SKILLS
from remit_client.errors import RemitError as ClientError
from remit_client.errors import error_of

EXTENSION = "io.modelcontextprotocol/skills"
_LIST, _READ = "skill:list", "skill:read"
_REVISION = "remit/revision"
_PAGES = 100
_UNSEEN = frozenset({"not_found", "denied", "unknown_event", "invalid_data"})
_PRIVATE = {"ttlMs": 0, "cacheScope": "private"}
_TASK = types.PromptArgument(name="task", description="What to do with the skill", required=False)

Ask = Callable[[str, dict[str, Any]], Awaitable[Any]]
Look = Callable[[McpCaller, str], Awaitable[bytes]]
"""The fingerprint of one kind of list as a caller would be shown it now."""


class SkillParams(types.RequestParams):
    """What `skills/get` is asked with."""

    uri: str


class DirectoryParams(types.PaginatedRequestParams):
    """What `resources/directory/read` is asked with."""

    uri: str


class Skills:
    """The skills of one caller, for one request."""

    def __init__(self, ask: Ask) -> None:
        """Make the skills of whoever `ask` asks for; it raises a RemitError when that fails."""
        self._ask = ask

    async def list_resources(self, cursor: str | None = None) -> types.ListResourcesResult:
        """The text of each skill; its other files are found through it, or through its folder."""
        items, after, revision = await self._page(cursor, files=False)
        listed = [resource(one, one["content"]) for one in items if may_be_listed(one)]
        return types.ListResourcesResult(
            resources=listed,
            next_cursor=after,
            ttl_ms=0,
            cache_scope="private",
            _meta={_REVISION: revision},
        )

    async def list_resource_templates(
        self, cursor: str | None = None
    ) -> types.ListResourceTemplatesResult:
        """The one form that all addresses have; the same for everybody."""
        del cursor  # there is one page
        template = types.ResourceTemplate(
            name="skill-file", uri_template=TEMPLATE, description="A file that belongs to a skill"
        )
        return types.ListResourceTemplatesResult(
            resource_templates=[template], ttl_ms=0, cache_scope="private"
        )

    async def read_resource(self, uri: str) -> types.ReadResourceResult:
        """A file of a skill, byte for byte.

        Raises:
            MCPError: there is none, or not for this caller.
        """
        address = parse(uri)
        if address is None or not address.path:
            _refuse("Resource not found", uri=uri)
        found = await self._file(address, "Resource not found", uri=uri)
        kind, text = mime_type(address.path), found["encoding"] == "utf-8"
        contents: types.TextResourceContents | types.BlobResourceContents
        if text:
            kind = kind or "text/plain"
            contents = types.TextResourceContents(uri=uri, mime_type=kind, text=found["content"])
        else:
            kind = kind or "application/octet-stream"
            contents = types.BlobResourceContents(uri=uri, mime_type=kind, blob=found["content"])
        return types.ReadResourceResult(contents=[contents], ttl_ms=0, cache_scope="private")

    async def list_prompts(self, cursor: str | None = None) -> types.ListPromptsResult:
        """Each skill that has a text, to be used by name."""
        items, after, revision = await self._page(cursor, files=False)
        prompts = [
            types.Prompt(
                name=SkillAddress(one["id"]).name,
                title=shown(one["title"]),
                description=shown(one["description"]),
                arguments=[_TASK],
            )
            for one in items
            if one["content"]
        ]
        return types.ListPromptsResult(
            prompts=prompts,
            next_cursor=after,
            ttl_ms=0,
            cache_scope="private",
            _meta={_REVISION: revision},
        )

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None
    ) -> types.GetPromptResult:
        """The text of a skill, fenced as what somebody else wrote, and the task if there is one.

        Raises:
            MCPError: there is none, or not for this caller.
        """
        unknown, at = f"Unknown prompt: {name}", SkillAddress(id_of(name))
        item = await self._one(at, unknown, name=name, files=False)
        if not item["content"]:
            _refuse(unknown, name=name)
        file = SkillAddress(at.id, item["content"])
        found = await self._file(file, unknown, name=name)
        if found["encoding"] != "utf-8":
            _refuse(unknown, name=name)
        body = split_frontmatter(found["content"].removeprefix("\ufeff"))[1]
        text = prompt_text(item["title"], at.uri(), body, (arguments or {}).get("task", ""))
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=shown(item["description"]), messages=[message])

    async def list_skills(self, params: types.PaginatedRequestParams) -> dict[str, Any]:
        """`skills/list`: the skills that follow the standard, each with all its files."""
        items, after, revision = await self._page(params.cursor)
        result: dict[str, Any] = {"skills": [entry(one) for one in items if is_standard(one)]}
        result |= {"_meta": {_REVISION: revision}}
        return result | ({"nextCursor": after} if after else {}) | _PRIVATE

    async def get_skill(self, params: SkillParams) -> dict[str, Any]:
        """`skills/get`: the same about one skill."""
        address, unknown = parse(params.uri), "No skill is served there"
        if address is None or address.path != SKILL_FILE or address.uri() != params.uri:
            _refuse(unknown, uri=params.uri)
        item = await self._one(address, unknown, uri=params.uri)
        if not is_standard(item):
            _refuse(unknown, uri=params.uri)
        return {"skill": entry(item)} | _PRIVATE

    async def read_directory(self, params: DirectoryParams) -> dict[str, Any]:
        """`resources/directory/read`: what lies directly in a folder of a skill."""
        address, unknown = parse(params.uri), "Not a directory resource"
        if address is None:
            _refuse(unknown, uri=params.uri)
        item = await self._one(address, unknown, uri=params.uri)
        found = children(item, address.path)
        if not found:
            _refuse(unknown, uri=params.uri)
        dumped = [one.model_dump(by_alias=True, mode="json", exclude_none=True) for one in found]
        return {"resources": dumped}

    async def everything(self) -> list[Item]:
        """All that the lists are made of; two equal ones give equal lists."""
        found, cursor = [], None
        for _ in range(_PAGES):
            items, cursor, _ = await self._page(cursor, files=False)
            found += items
            if cursor is None:
                break
        return found

    async def _page(
        self, cursor: str | None, *, files: bool = True
    ) -> tuple[list[Item], str | None, int]:
        """Skills of the caller, where the next page begins, and the revision."""
        asked: dict[str, Any] = {"files": files} | ({"after": cursor} if cursor else {})
        try:
            page = await self._ask(SKILLS, asked)
        except (RemitError, ClientError) as error:
            _fail(error, "Unknown cursor", cursor=cursor)
        return page["items"], page["next"], page["revision"]

    async def _one(
        self, at: SkillAddress, unknown: str, *, files: bool = True, **asked: str
    ) -> Item:
        try:
            page = await self._ask(_LIST, {"id": at.id, "files": files})
        except (RemitError, ClientError) as error:
            _fail(error, unknown, **asked)
        found: Item = page["items"][0]
        return found

    async def _file(self, at: SkillAddress, unknown: str, **asked: str) -> Item:
        try:
            found: Item = await self._ask(_READ, {"id": at.id, "path": at.path})
        except (RemitError, ClientError) as error:
            _fail(error, unknown, **asked)
        return found


def skills_of(caller: McpCaller) -> Skills:
    """The skills of a caller."""

    async def ask(event: str, data: dict[str, Any]) -> Any:
        answer = await caller.ask(event, data)
        if answer.error is not None:
            raise error_of(answer)
        return answer.data

    return Skills(ask)


SkillMethod = Callable[[Skills, Any], Awaitable[Any]]

_LIST_METHODS: dict[str, SkillMethod] = {
    "resources/list": lambda skills, asked: skills.list_resources(asked.cursor),
    "prompts/list": lambda skills, asked: skills.list_prompts(asked.cursor),
}
"""Lists that a host shows to people; it is told when they change."""
_OTHER_METHODS: dict[str, tuple[type[types.RequestParams], SkillMethod]] = {
    "resources/templates/list": (
        types.PaginatedRequestParams,
        lambda skills, asked: skills.list_resource_templates(asked.cursor),
    ),
    "resources/read": (
        types.ReadResourceRequestParams,
        lambda skills, asked: skills.read_resource(asked.uri),
    ),
    "prompts/get": (
        types.GetPromptRequestParams,
        lambda skills, asked: skills.get_prompt(asked.name, asked.arguments),
    ),
    "skills/list": (types.PaginatedRequestParams, Skills.list_skills),
    "skills/get": (SkillParams, Skills.get_skill),
    "resources/directory/read": (DirectoryParams, Skills.read_directory),
}


def serve_skills(
    server: Server[Any],
    caller_of: Callable[[Anything], McpCaller],
    listeners: Listeners,
    look: Look,
) -> None:
    """Let a server answer for the skills of its callers."""

    def listing(answer: SkillMethod) -> Any:
        async def handle(ctx: Anything, asked: Any) -> Any:
            caller = caller_of(ctx)
            listeners.shown(ctx, caller, SKILL_LIST, await look(caller, SKILL_LIST))
            return await answer(skills_of(caller), asked)

        return handle

    def other(answer: SkillMethod) -> Any:
        async def handle(ctx: Anything, asked: Any) -> Any:
            return await answer(skills_of(caller_of(ctx)), asked)

        return handle

    for method, answer in _LIST_METHODS.items():
        server.add_request_handler(method, types.PaginatedRequestParams, listing(answer))
    for method, (kind, answer) in _OTHER_METHODS.items():
        server.add_request_handler(method, kind, other(answer))
    server.extensions[EXTENSION] = {"directoryRead": True}


def _fail(error: RemitError | ClientError, unknown: str, **asked: str | None) -> NoReturn:
    """Tell what went wrong; what is not there and what is not allowed are told alike."""
    if error.code in _UNSEEN:
        _refuse(unknown, **asked)
    data = {"code": error.code, "hint": error.hint}
    raise MCPError(types.INTERNAL_ERROR, f"{error.message} [{error.code}]", data) from error


def _refuse(message: str, **asked: str | None) -> NoReturn:
    raise MCPError(types.INVALID_PARAMS, message, asked)
