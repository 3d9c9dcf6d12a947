"""The first minute: three scripted agents on a real daemon, with nothing but this machine.

Every line is a real call over the real socket, every figure is measured, and every refusal says
which line of which file decided it.
"""

import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import click
import msgspec

import remit_client
from remit.app.daemon import run_daemon
from remit.app.logs import configure_logs
from remit.cli.options import SharedOptions, with_options
from remit.cli.outcome import next_step, print_json, say
from remit.config.settings.home import Home
from remit.config.settings.table import Settings
from remit_client.keys import Key

Say = Callable[[str, dict[str, Any]], None]
"""Shows a step: what kind it is, and its facts."""


class Step(msgspec.Struct, frozen=True):
    """One call of the script."""

    agent: str
    event: str
    data: dict[str, Any]
    why: str


_SCOUT = ["state:get", "state:list", "agent:send_message", "message:*"]
SCRIPT = (
    Step("lead", "state:set", {"key": "plan/1", "value": "read the logs"}, "writes down the plan"),
    Step(
        "lead",
        "agent:spawn",
        {"profile": "minimal", "additional_tools": ["key:add"]},
        "asks for a helper that may do more",
    ),
    Step("scout", "state:get", {"key": "plan/1"}, "reads the plan"),
    Step("scout", "state:set", {"key": "plan/1", "value": "my own"}, "would change the plan"),
    Step("worker", "state:set", {"key": "result/1", "value": 42}, "writes a result"),
    Step("worker", "state:delete", {"key": "plan/1"}, "would delete the plan"),
    Step("scout", "agent:send_message", {"agent_id": "lead", "message": "done"}, "reports"),
    Step("lead", "agent:terminate", {"agent_id": "scout"}, "would end its helper"),
)


@click.command()
@with_options
def demo(shared: SharedOptions) -> None:
    """Watch three scripted agents work on a real daemon; no network, nothing is kept."""
    folder = Path(tempfile.mkdtemp(prefix="remit-demo-"))
    settings = shared.settings(log_level="error")
    settings = _in(settings, folder)
    configure_logs(settings)
    steps: list[dict[str, Any]] = []

    def show(kind: str, facts: dict[str, Any]) -> None:
        if shared.as_json:
            steps.append({"kind": kind, **facts})
        else:
            say(_LINES[kind](facts))
            sys.stdout.flush()

    try:
        totals = anyio.run(_perform, settings, show)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if shared.as_json:
        print_json({"steps": steps, "totals": totals})
        return
    say(f"\n{totals['allowed']} allowed, {totals['denied']} denied, each with its reason")
    next_step("why base_multi_agent agent:terminate")


def _in(settings: Settings, folder: Path) -> Settings:
    """The shipped definitions in a home of their own, whatever is configured."""
    return msgspec.structs.replace(
        settings, home=folder, catalogue=None, compositions=None, handlers=(), endpoint=""
    )


def _daemon(facts: dict[str, Any]) -> str:
    return (
        f"a daemon with {facts['profiles']} profiles and {facts['events']} events; "
        "lead, scout and worker begin\n"
    )


def _step(facts: dict[str, Any]) -> str:
    mark = click.style("allow", fg="green") if facts["ok"] else click.style("DENY ", fg="red")
    line = f"{mark}  {facts['agent']:7} {facts['event']:20} {facts['why']}"
    if facts["ok"]:
        return line
    places = ", ".join(facts["rules"]) or "nothing grants it"
    return f"{line}\n         {facts['reason']}: {places}  (decision {facts['decision']})"


def _bill(facts: dict[str, Any]) -> str:
    saved = 100 - round(100 * facts["sent"] / max(1, facts["full_dump"]))
    return (
        f"bill   {facts['agent']:7} {facts['tools']} tools in about {facts['sent']} tokens, "
        f"{saved} % less than {facts['full_dump']} with all schemas"
    )


_LINES = {"daemon": _daemon, "step": _step, "bill": _bill}


async def _perform(settings: Settings, show: Say) -> dict[str, int]:
    """Play the script and answer its totals."""
    totals = {"allowed": 0, "denied": 0}
    async with run_daemon(settings) as daemon:
        show("daemon", daemon.ready(Home(settings.home)))
        async with _cast(settings) as cast:
            for step in SCRIPT:
                outcome = await _play(step, cast)
                totals["allowed" if outcome["ok"] else "denied"] += 1
                show("step", outcome)
            for name in ("lead", "scout", "worker"):
                show("bill", {"agent": name} | await _cost(cast[name]))
    return totals


@asynccontextmanager
async def _cast(settings: Settings) -> AsyncGenerator[dict[str, Any]]:
    """The operator, a coordinator, and two helpers that it spawned itself."""
    async with AsyncExitStack() as stack:
        operator = await stack.enter_async_context(remit_client.connect(home=settings.home))
        lead = await _spawn(stack, settings, operator, "lead", profile="base_multi_agent")
        helpers = {
            name: await _spawn(stack, settings, lead, name, on_excess="narrow", **request)
            for name, request in (
                ("scout", {"profile": "minimal", "additional_tools": _SCOUT}),
                ("worker", {"profile": "base_multi_agent", "disallowed_tools": ["state:delete"]}),
            )
        }
        yield {"operator": operator, "lead": lead, **helpers}


async def _spawn(
    stack: AsyncExitStack, settings: Settings, parent: Any, name: str, **request: Any
) -> Any:
    answer = await parent.call("agent:spawn", {"agent_id": name, **request})
    home = Home(settings.home)
    key = Key(
        name=name,
        public_key=answer["credentials"]["public_key"],
        secret_key=answer["credentials"]["secret_key"],
        server_key=home.server_public_key.read_text(encoding="ascii").strip(),
        endpoint=home.endpoint.read_text(encoding="utf-8").strip(),
    )
    return await stack.enter_async_context(remit_client.connect(key=key))


async def _play(step: Step, cast: dict[str, Any]) -> dict[str, Any]:
    outcome: dict[str, Any] = {"agent": step.agent, "event": step.event, "why": step.why}
    try:
        answer = await cast[step.agent].ask(step.event, step.data)
    except remit_client.RemitError as error:
        rules = await _rules(cast["operator"], step)
        return outcome | {
            "ok": False,
            "code": error.code,
            "reason": error.details.get("reason", error.code),
            "decision": error.decision,
            "rules": rules,
        }
    return outcome | {"ok": True, "decision": answer.decision}


async def _rules(operator: Any, step: Step) -> list[str]:
    found = await operator.call("permission:explain", {"event": step.event, "agent": step.agent})
    return [f"{rule['file']}:{rule['line']}:{rule['column']}" for rule in found["denied_by"]]


async def _cost(agent: Any) -> dict[str, Any]:
    """What the agent's tools cost as a thin list, against all their schemas."""
    listed = await agent.call("system:discover", {"level": "namespace", "format": "mcp"})
    return {"tools": len(listed["tools"]), **listed["tokens"]}
