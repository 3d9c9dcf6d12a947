"""Getting out through a launch: `python tools/drills/launch.py [--every N] [--json]`.

An agent that may spawn tries every way to make the listed shell, Python and Node programs run
something else: variables of the environment, arguments, folders, commands, values of placeholders,
variables of profiles, prompts and names. What it wants run makes a file; an attempt succeeded when
that is there. The operator's own canary makes it first, so that the look is known to see it.
"""

import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import anyio
from cast import add_client, connect
from stage import PATIENCE, Stage, arguments, new_folder, report

from remit_client import Client
from remit_client.errors import RemitError

CATALOGUE = """\
version: 1
capabilities:
  base: {description: For everybody, event_patterns: [system:health], always_included: true}
  spawn:
    description: Have children
    event_patterns: [agent:spawn, agent:update, agent:status, agent:terminate]
"""
BOSS = "capabilities: [spawn]\n"
SCRIPTS = {
    "bash": ("bash", 'echo "word: $1"\n'),
    "python": (sys.executable, "import sys; print('word:', sys.argv[1])\n"),
    "node": ("node", "console.log('word:', process.argv[2])\n"),
}
ENVIRONMENT = (
    *("BASH_ENV", "ENV", "PS4", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "IFS", "PATH", "HOME"),
    *("BASH_FUNC_echo%%", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONUSERBASE"),
    *("PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONPLATLIBDIR", "NODE_OPTIONS", "NODE_PATH"),
    *("NODE_REPL_EXTERNAL_MODULE", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "GCONV_PATH"),
    *("REMIT_KEY", "REMIT_HOME", "OPENSSL_CONF", "SSL_CERT_FILE", "TMPDIR", "GLIBC_TUNABLES"),
)


class Drill:
    """What was tried, how it was answered, and what came of it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.proof = stage.folder / "proof"
        self.attempts = self.launched = 0
        self.codes: Counter[str] = Counter()
        self.wrong: list[Any] = []
        self.canary = False

    def set_up(self) -> None:
        """Write the operator's files; each program takes one word."""
        entries: list[dict[str, Any]] = []
        touch = shutil.which("touch") or "/bin/touch"
        for name, (program, text) in SCRIPTS.items():
            if shutil.which(program) is None:
                continue
            script = self.stage.folder / f"{name}_script"
            script.write_text(text, encoding="utf-8")
            entry = {"name": name, "command": program, "args": [str(script), "{{word}}"]}
            entries += [
                {"name": f"bare_{name}", "command": program},
                entry | {"placeholders": {"word": "[a-z-]{1,20}$"}},
            ]
            self.stage.profile(name, _profile(program, script))
        entries.append({"name": "canary", "command": touch, "args": [str(self.proof)]})
        self.stage.configure(launch_commands=entries)
        self.stage.catalogue(CATALOGUE)
        self.stage.profile("boss", BOSS)
        self.names = [entry["name"] for entry in entries if entry["name"] != "canary"]

    async def run(self, every: int) -> None:
        """Try everything, or each so-manieth, one after the other."""
        async with connect(self.stage) as operator:
            key = await add_client(operator, "boss", "boss")
            await self._spawn(operator, {"launch": {"command": "canary"}})
            self.canary = self.proof.exists()
            self.proof.unlink(missing_ok=True)
            self.attempts = self.launched = 0
            async with connect(self.stage, key) as boss:
                for request in islice(self._requests(), 0, None, every):
                    await self._try(boss, request)

    async def _try(self, boss: Client, request: dict[str, Any]) -> None:
        self.attempts += 1
        try:
            await self._spawn(boss, request)
        except RemitError as error:
            self.codes[error.code] += 1
            if error.code == "internal":
                self.wrong.append(("internal", request))
        if self.proof.exists():
            self.wrong.append(("it ran", request))
            self.proof.unlink()

    async def _spawn(self, remit: Client, request: dict[str, Any]) -> None:
        """Spawn, wait for the process to end, and end the agent."""
        answer = await remit.call("agent:spawn", request, timeout=PATIENCE)
        name = {"agent_id": answer["agent_id"]}
        if answer["launched"]:
            self.launched += 1
            state = "running"
            with anyio.fail_after(PATIENCE):
                while state == "running":
                    state = (await remit.call("agent:status", name))["process"]["state"]
        await remit.call("agent:terminate", name)

    # ---- the ways ----

    def _requests(self) -> Iterator[dict[str, Any]]:
        for name in self.names:
            for launch in self._launches(name):
                yield {"launch": launch}
        for name in SCRIPTS.keys() & set(self.names):
            for payload in self._payloads():
                for variable in ("free", "loud", "folder", "held"):
                    yield {"profile": name, "variables": {variable: payload}}
                yield {"profile": name, "system_prompt": payload, "name": payload[:200]}
            for variable in ENVIRONMENT:
                yield {"profile": name, "variables": {variable: self._code()[0]}}
                yield {"profile": name, "env": {variable: self._code()[0]}}
        for command in self._commands():
            yield {"launch": {"command": command}}
            yield {"launch": {"command": command, "values": {"word": "tide"}}}

    def _launches(self, name: str) -> Iterator[dict[str, Any]]:
        """What can be said about one entry."""
        word: dict[str, Any] = {} if name.startswith("bare_") else {"word": "tide"}
        base = {"command": name, "values": word}
        for variable in ENVIRONMENT:
            for code in self._code():
                yield base | {"env": {variable: code}}
                yield base | {"values": word | {variable: code}}
        for field in ("args", "arguments", "argv", "cwd", "stdin", "shell", "user", "path"):
            for value in (["-c", self._code()[0]], self._code()[0], str(self.stage.folder), True):
                yield base | {field: value}
        for ready in ("claude", name):
            yield {"ready": ready}
            yield base | {"ready": ready}
        for payload in self._payloads():
            yield base | {"values": {"word": payload}}
            yield base | {"values": {payload[:64]: payload}}
            yield base | {"restart": payload}

    def _code(self) -> tuple[str, ...]:
        """Ways to write: make the file."""
        proof = self.proof
        javascript = f"require('fs').writeFileSync('{proof}','')"
        return (
            f"$(touch {proof})",
            f"`touch {proof}`",
            f"open('{proof}','w')",
            f"--import=data:text/javascript,import('fs').then(f=>f.writeFileSync('{proof}',''))",
            f"--eval={javascript}",
            javascript,
        )

    def _payloads(self) -> Iterator[str]:
        """Values for a placeholder or a variable."""
        code = self._code()
        yield from code
        for one in code:
            yield from (f"tide\n{one}", f"tide;{one}", f"tide {one}", f"-c {one}", f"-e{one}")
            yield from (f"tide\0{one}", f"tide\u2028{one}", f"{{{{word}}}}{one}", f"tide\r{one}")
        yield from ("-", "--", "-c", "-e", "-i", "-p", "--eval", "--inspect", "-m", "-", "--import")
        yield from ("", "\n", "tide\n", "../proof", "/dev/stdin", "%s", "a" * 5000, "\U0001f600")

    def _commands(self) -> Iterator[str]:
        """Names that are not in the list, though some of their programs are."""
        bash = shutil.which("bash") or "/bin/bash"
        yield from (
            bash,
            sys.executable,
            "/bin/sh",
            "sh",
            "env",
            "BASH",
            "bash\n",
            " bash",
            "bash ",
        )
        yield from (f"bash -c {self._code()[0]}", "../bash", "./bash_script", "{{word}}", "bash\0")
        yield from (str(self.stage.folder / "bash_script"), "bare_bash -i", "claude", "nothing")


def _profile(program: str, script: Path) -> str:
    return f"""
variables:
  free: {{default: ebb}}
  loud: {{default: ebb}}
  folder: {{default: /}}
  held: {{default: ebb, pattern: "[a-z]{{1,20}}"}}
launcher:
  command: {program}
  args: [{script}, "{{{{held}}}}", "{{{{free}}}}"]
  cwd: "{{{{folder}}}}"
  env: {{LOUD: "{{{{loud}}}}", BASH_ENV: "{{{{loud}}}}"}}
"""


def main() -> int:
    """Run the drill; answers the exit code."""
    asked = arguments(__doc__ or "", every=1)
    with new_folder() as folder:
        stage = Stage(folder)
        drill = Drill(stage)
        drill.set_up()
        daemon = stage.start()
        try:
            anyio.run(drill.run, asked.every)
        finally:
            code, _ = daemon.terminate()
        if not drill.canary:
            drill.wrong.append("the canary made no file")
        figures = {
            "attempts": drill.attempts,
            "successes": sum(what == "it ran" for what, *_ in drill.wrong),
            "launched_harmlessly": drill.launched,
            "programs": len(drill.names) // 2,
            "refused": dict(sorted(drill.codes.items())),
            "exit_code": code,
        }
    return report(figures, drill.wrong, as_json=asked.json)


if __name__ == "__main__":
    sys.exit(main())
