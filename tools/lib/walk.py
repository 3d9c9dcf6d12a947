"""Which files of remit one request touches behind the face: `./tools/walk why agent:spawn`.

A daemon runs in this process, with a store on disk, and is asked through its dispatcher, the door
of every face. `sys.setprofile` notes each function of the package that is entered between the
request and its answer in the thread that serves it. What its worker threads do meanwhile (the store
commits, a reload compiles) is noted too and shown, but not counted. Each walk is walked once
without looking, because what is loaded or cached then is not the walk, and three times with; what
happened each time counts, so that a timer of the daemon does not.

A walk has its own files, and those of kernel and model on the road of every change (`walk set`),
which who has seen them once does not look at again. The goals are about its own.
"""

import argparse
import functools
import json
import logging
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import structlog

import remit
from remit.app.daemon import Daemon, run_daemon
from remit.config.definitions.files import starter_dir
from remit.config.settings.load import load_settings
from remit.errors import RemitError
from remit.model.principal import OPERATOR, Principal

PAGE = Path(__file__).resolve().parents[2] / "ARCHITECTURE.md"
PACKAGE = str(Path(remit.__path__[0])) + os.sep
ROUNDS = 3
SHOWN = 5
Files = dict[str, list[str]]
"""Files in the order of their first touch, with the functions entered in each."""


class Entered:
    """What one walk entered."""

    def __init__(self) -> None:
        self.files: Files = {}
        """In the thread that serves the request: these are counted."""
        self.workers: Files = {}
        """In its worker threads and nowhere else."""

    def in_all(self, others: "list[Entered]") -> "Entered":
        """What was entered in the other rounds as well."""
        found = Entered()
        found.files = {
            file: names
            for file, names in self.files.items()
            if all(file in one.files for one in others)
        }
        found.workers = {
            file: names
            for file, names in self.workers.items()
            if all(file in one.workers or file in one.files for one in others)
        }
        return found


class Profiler:
    """Notes what is entered while it looks, in this thread and those that start after it."""

    def __init__(self) -> None:
        self._noted: dict[str, tuple[set[int], dict[str, None]]] | None = None
        self._serving = threading.get_ident()
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    @contextmanager
    def looking(self) -> Generator[Entered]:
        """Fill the answer with what is entered meanwhile."""
        found = Entered()
        self._noted = {}
        try:
            yield found
        finally:
            noted, self._noted = self._noted, None
            for file, (threads, names) in noted.items():
                kind = found.files if self._serving in threads else found.workers
                kind[file] = list(names)

    def _note(self, frame: FrameType, what: str, _: Any) -> None:
        noted = self._noted
        if noted is None or what != "call":
            return
        code = frame.f_code
        if code.co_filename.startswith(PACKAGE):
            threads, names = noted.setdefault(code.co_filename[len(PACKAGE) :], (set(), {}))
            threads.add(threading.get_ident())
            names[code.co_qualname.partition(".<")[0]] = None  # what is inside is part of it


class Ground:
    """A daemon on the starter definitions, an agent that may do all that is walked, a server."""

    def __init__(self, folder: Path, daemon: Daemon, agent: Principal) -> None:
        self.folder = folder
        self.daemon = daemon
        self.agent = agent
        self._edits = 0

    async def ask(self, event: str, who: Principal = OPERATOR, /, **data: Any) -> Any:
        """The data of a good answer."""
        return await self.daemon.dispatcher.ask(who, event, data)

    def edit(self) -> None:
        """Change a description, so that there is something to reload."""
        self._edits += 1
        _profile(self.folder, "edited", f"description: edit {self._edits}\ncapabilities: [noop]\n")


Step = Callable[[Ground, str], Awaitable[Any]]


async def _check(ground: Ground, event: str) -> None:
    await ground.ask("permission:check", ground.agent, event=event)


async def _why(ground: Ground, event: str) -> None:
    await ground.ask("permission:explain", profile="base_multi_agent", event=event)


async def _reload(ground: Ground, _: str) -> None:
    await ground.ask("config:reload")


async def _upstream(ground: Ground, tool: str) -> None:
    await ground.ask(f"mcp:walk:{tool}", ground.agent, said="hello")


async def _discover(ground: Ground, query: str) -> None:
    await ground.ask("discovery:discover", ground.agent, query=query)


async def _inject(ground: Ground, message: str) -> None:
    files = [{"path": "AGENTS.md", "content": "be kind"}]
    data = {"files": files, "messages": [message], "session_type": "main"}
    await ground.ask("awareness:inject", ground.agent, **data)


async def _spawn(ground: Ground, profile: str) -> None:
    await ground.ask("agent:spawn", ground.agent, profile=profile, agent_id="child")


async def _set(ground: Ground, key: str) -> None:
    await ground.ask("state:set", ground.agent, key=key, value=1)


async def _nothing(_: Ground) -> None:
    pass


async def _edit(ground: Ground) -> None:
    ground.edit()


async def _end_child(ground: Ground) -> None:
    agents = await ground.ask("agent:list")
    if any(one["agent_id"] == "child" for one in agents["items"]):
        await ground.ask("agent:terminate", agent_id="child")


class Walk:
    """A request whose files are counted."""

    def __init__(
        self,
        what: str,
        step: Step,
        words: str,
        goal: int,
        *,
        before: Callable[[Ground], Awaitable[None]] = _nothing,
    ) -> None:
        self.what = what
        self.step = step
        self.words = words
        self.goal = goal
        self.before = before

    async def files(self, ground: Ground, profiler: Profiler, words: str) -> Entered:
        """What is entered each time that this is walked."""
        rounds = []
        for _ in range(1 + ROUNDS):
            await self.before(ground)
            await anyio.wait_all_tasks_blocked()
            with profiler.looking() as found:
                await self.step(ground, words)
            rounds.append(found)
        *others, last = rounds[1:]
        return last.in_all(others)


ROAD = "set"
"""The walk whose files in kernel and model every change touches, whatever it changes."""
WALKS = {
    "check": Walk("may an agent use the event WORDS?", _check, "state:set", 8),
    "why": Walk("why may a profile use the event WORDS, or not?", _why, "agent:spawn", 10),
    "reload": Walk("put an edited profile in force", _reload, "", 14, before=_edit),
    "upstream": Walk("call the tool WORDS of an upstream server", _upstream, "echo", 18),
    "inject": Walk("give an agent the cards that fit WORDS", _inject, "keep this in the state", 12),
    ROAD: Walk("keep a value: the road of every change", _set, "key", 20),
    "spawn": Walk(
        "create an agent under the profile WORDS", _spawn, "child", 14, before=_end_child
    ),
    "discover": Walk("find the tools that fit WORDS", _discover, "keep a value for later", 16),
}
"""In the order in which all are walked. The search is last: calls that follow one are watched."""

WALKER = """
capabilities: [base, self_knowledge, state_write, discovery, awareness, spawn_agents, upstream]
"""
UPSTREAM = """
  upstream:
    description: The tools of the upstream server
    event_patterns: ["mcp:*"]
"""


def _profile(folder: Path, name: str, text: str) -> None:
    beside = folder / "beside"
    beside.write_text(f"name: {name}\n{text}", encoding="utf-8")
    beside.replace(folder / "compositions" / f"{name}.yaml")


def _prepare(folder: Path) -> dict[str, Any]:
    """Write the definitions and the server, and answer the settings."""
    shutil.copytree(starter_dir() / "compositions", folder / "compositions")
    catalogue = (starter_dir() / "capabilities.yaml").read_text(encoding="utf-8") + UPSTREAM
    (folder / "capabilities.yaml").write_text(catalogue, encoding="utf-8")
    _profile(folder, "walker", WALKER)
    _profile(folder, "child", "capabilities: [state_read]\n")
    server = Path(__file__).with_name("walk_upstream.py")
    entry = {"command": sys.executable, "args": ["-S", str(server)], "trust": "on_first_use"}
    servers = folder / "servers.yaml"
    servers.write_text(json.dumps({"version": 1, "upstreams": {"walk": entry}}), encoding="utf-8")
    return {
        "home": str(folder / "home"),
        "catalogue": str(folder / "capabilities.yaml"),
        "compositions": str(folder / "compositions"),
        "upstreams": str(servers),
        "search": "words",
        "watch": False,
    }


@asynccontextmanager
async def prepared() -> AsyncIterator[Ground]:
    """A daemon in a folder of its own, ready for every walk."""
    with tempfile.TemporaryDirectory(prefix="remit-") as name:
        folder = Path(name)
        flags = _prepare(folder)
        env = {"PATH": os.environ.get("PATH", ""), "HOME": name, "XDG_CONFIG_HOME": name}
        async with run_daemon(load_settings(flags, env, name)) as daemon:
            await daemon.dispatcher.ask(OPERATOR, "upstream:check", {"name": "walk"})
            data = {"profile": "walker", "agent_id": "walker"}
            await daemon.dispatcher.ask(OPERATOR, "agent:spawn", data)
            walker = Principal("walker", "agent", "walker", serial=1)  # the first of this daemon
            yield Ground(folder, daemon, walker)


async def measure(names: list[str], words: str | None) -> dict[str, Entered] | RemitError:
    """The files of each walk, or what the daemon answered instead."""
    profiler = Profiler()
    async with prepared() as ground:
        found = {}
        for name in dict.fromkeys([ROAD, *names]):
            walk = WALKS[name]
            try:
                asked = words if words and name in names else walk.words
                found[name] = await walk.files(ground, profiler, asked)
            except RemitError as error:  # caught here: outside, it is in a group in a group
                return error
        return found


def own(name: str, found: dict[str, Entered]) -> list[str]:
    """The files of a walk without those of the road that every change takes."""
    road = [] if name == ROAD else [*found[ROAD].files, *found[ROAD].workers]
    shared = [file for file in road if file.startswith(("kernel/", "model/"))]
    return [file for file in found[name].files if file not in shared]


def shown(name: str, found: dict[str, Entered], *, only_own: bool = False) -> Iterator[str]:
    """A walk as people read it, line by line."""
    files, workers, alone = found[name].files, found[name].workers, own(name, found)
    width = max(map(len, alone if only_own else [*files, *workers]))
    yield f"{name}: {WALKS[name].what}"
    for number, (file, functions) in enumerate(files.items(), start=1):
        if file in alone:
            yield f"{number:3}   {file:{width}}  {_shortened(functions)}"
        elif not only_own:
            yield f"{number:3} · {file:{width}}  {_shortened(functions)}"
    counts = f"{len(files)} files, {len(alone)} of them its own (goal: {WALKS[name].goal})"
    if only_own:
        yield counts
        return
    if workers:
        yield "in worker threads meanwhile, not counted:"
        for file, functions in workers.items():
            yield f"      {file:{width}}  {_shortened(functions)}"
    yield f"{counts}; · is the road of every change: ./tools/walk {ROAD}"


_ON_A_PAGE = re.compile(r"^\$ \./tools/walk (\w+)( --own)?\n[^`]*", re.MULTILINE)


def refreshed(page: str, found: dict[str, Entered]) -> str:
    """A page in which each `$ ./tools/walk WALK` is followed by its output of now."""

    def output(match: re.Match[str]) -> str:
        command = match[0].partition("\n")[0]
        return "\n".join([command, *shown(match[1], found, only_own=bool(match[2])), ""])

    return _ON_A_PAGE.sub(output, page)


def _shortened(functions: list[str]) -> str:
    more = [f"and {len(functions) - SHOWN} more"] if len(functions) > SHOWN else []
    return ", ".join(functions[:SHOWN] + more)


def _summary(found: dict[str, Entered]) -> None:
    print("walk       own  goal  files  workers  what is asked")
    for name, entered in found.items():
        counts = f"{len(own(name, found)):4} {WALKS[name].goal:5} {len(entered.files):6}"
        counts += f" {len(entered.workers):8}"
        print(f"{name:9} {counts}  {WALKS[name].what}")
    print("\n./tools/walk WALK [WORDS] shows the files of one, in the order of their first touch.")


def _asked(arguments: list[str] | None) -> argparse.Namespace:
    asked = argparse.ArgumentParser("./tools/walk", description=__doc__.partition("\n")[0])
    walks = ", ".join(WALKS)
    asked.add_argument("walk", nargs="?", help=f"one of {walks}; without it, all are counted")
    asked.add_argument("words", nargs="*", help="an event, profile, tool or text to ask with")
    asked.add_argument("--own", action="store_true", help="without the road of every change")
    asked.add_argument("--json", action="store_true", help="answer as JSON")
    asked.add_argument("--page", action="store_true", help="write ARCHITECTURE.md anew")
    found = asked.parse_args(arguments)
    if found.walk is not None and found.walk not in WALKS:
        asked.error(f"there is no walk {found.walk!r}; there are {walks}")
    return found


def main(arguments: list[str] | None = None) -> None:
    """Walk, and print."""
    asked = _asked(arguments)
    names = [asked.walk] if asked.walk else list(WALKS)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    found = anyio.run(functools.partial(measure, names, " ".join(asked.words) or None))
    if isinstance(found, RemitError):
        sys.exit(f"error: {found}")
    if asked.page:
        PAGE.write_text(refreshed(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    elif asked.json:
        figures = {
            name: {
                "goal": WALKS[name].goal,
                "own": own(name, found),
                "files": found[name].files,
                "workers": found[name].workers,
            }
            for name in names
        }
        print(json.dumps(figures, indent=1))
    elif asked.walk:
        print("\n".join(shown(asked.walk, found, only_own=asked.own)))
    else:
        _summary(found)


if __name__ == "__main__":
    main()
