"""The peers of `http.py`, each a process of its own: `python http_peers.py starlette|fastapi PORT`.

Both read the JSON that `/v1/check` reads and answer JSON of the same size, and know nothing of who
asks or what it may. They run as the daemon does: uvicorn, h11, uvloop where it is installed.
"""

import sys
from typing import Any

import uvicorn

ANSWER = {"revision": 1}


def starlette_app() -> Any:
    """Read JSON, write JSON."""
    from starlette.applications import Starlette  # noqa: PLC0415 - only one peer is started
    from starlette.requests import Request  # noqa: PLC0415
    from starlette.responses import JSONResponse  # noqa: PLC0415
    from starlette.routing import Route  # noqa: PLC0415

    async def check(request: Request) -> JSONResponse:
        asked = await request.json()
        return JSONResponse({"results": _results(asked["events"])} | ANSWER)

    return Starlette(routes=[Route("/v1/check", check, methods=["POST"])])


def fastapi_app() -> Any:
    """The same with a model in front."""
    from fastapi import FastAPI  # noqa: PLC0415
    from pydantic import BaseModel  # noqa: PLC0415

    class Check(BaseModel):
        """What is asked."""

        events: list[str]
        agent: str | None = None

    app = FastAPI(openapi_url=None)

    @app.post("/v1/check")
    async def check(asked: Check) -> dict[str, Any]:
        return {"results": _results(asked.events)} | ANSWER

    return app


def _results(events: list[str]) -> list[dict[str, Any]]:
    return [{"event": event, "allowed": True, "reason": "granted"} for event in events]


if __name__ == "__main__":
    make = {"starlette": starlette_app, "fastapi": fastapi_app}[sys.argv[1]]
    uvicorn.run(
        make(), port=int(sys.argv[2]), http="h11", access_log=False, log_level="error", ws="none"
    )
