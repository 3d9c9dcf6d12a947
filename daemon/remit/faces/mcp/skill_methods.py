"""The requests that skills answer, registered with the server."""

from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server

from remit.faces.mcp.caller import Caller
from remit.faces.mcp.listeners import SKILLS, Anything, Listeners
from remit.faces.mcp.skills import Skills, skills_of

Look = Callable[[Caller, str], Awaitable[bytes]]
Answering = Callable[[Skills, Any], Awaitable[Any]]

_LISTS: dict[str, Answering] = {
    "resources/list": lambda skills, asked: skills.list_resources(asked.cursor),
    "prompts/list": lambda skills, asked: skills.list_prompts(asked.cursor),
}
"""What a host shows to people; it is told when they change."""
_OTHERS: dict[str, tuple[type[types.RequestParams], Answering]] = {
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
    **Skills.METHODS,
}


def serve_skills(
    server: Server[Any], caller_of: Callable[[Anything], Caller], listeners: Listeners, look: Look
) -> None:
    """Let a server answer for the skills of its callers."""

    def listing(answer: Answering) -> Any:
        async def handle(ctx: Anything, asked: Any) -> Any:
            caller = caller_of(ctx)
            listeners.shown(ctx, caller, SKILLS, await look(caller, SKILLS))
            return await answer(skills_of(caller), asked)

        return handle

    def other(answer: Answering) -> Any:
        async def handle(ctx: Anything, asked: Any) -> Any:
            return await answer(skills_of(caller_of(ctx)), asked)

        return handle

    for method, answer in _LISTS.items():
        server.add_request_handler(method, types.PaginatedRequestParams, listing(answer))
    for method, (kind, answer) in _OTHERS.items():
        server.add_request_handler(method, kind, other(answer))
    server.extensions.update(Skills.EXTENSIONS)
