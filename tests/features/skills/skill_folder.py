"""Folders of skills on disk, and a desk that serves them."""

from pathlib import Path
from typing import Any

from tests.fakes import Desk, built_in_handlers, texts

from remit.features.discovery.service import Discovery, Gathered
from remit.features.skills.directories import CapabilityDirectory, DirectoryScanner
from remit_client.errors import error_of
from remit_client.wire import Failure

CATALOGUE = """
  skills: {description: d, event_patterns: ["skill:*"], always_included: true}
  discovery: {description: d, event_patterns: ["discovery:describe"], always_included: true}
  accounting: {description: d, skills: [taxes]}
"""
TIDES = """---
name: tides
description: Read tables of tides
license: MIT
metadata: {version: "2.1"}
---
# Tides

Look into references/harbours.md.
"""


class SkillFolder:
    """A capability directory, and the profiles `clerk`, who holds `accounting`, and `guest`."""

    def __init__(self, folder: Path, catalogue: str = CATALOGUE, **profiles: str) -> None:
        self.folder = folder
        profiles = profiles or {
            "clerk": "capabilities: [accounting]",
            "guest": "capabilities: []",
            "stranger": "capabilities: []\ndisallowed_tools: ['skill:*']",
        }
        self.desk = Desk(built_in_handlers(), texts(catalogue, **profiles))
        self._scanner = DirectoryScanner()
        self.desk.kernel.service(Discovery)._gather = self._gather

    def write(self, path: str, content: str | bytes) -> None:
        """Put a file there; it counts from the next question on."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        self.desk.kernel.service(Discovery).folders_changed()

    def skill(self, name: str, keys: str = "", body: str = "Do it.") -> None:
        """Put a plain skill there."""
        self.write(f"{name}/SKILL.md", f"---\nname: {name}\ndescription: d\n{keys}---\n{body}\n")

    def link(self, path: str, target: Path | str) -> None:
        """Put a link there."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(target)
        self.desk.kernel.service(Discovery).folders_changed()

    async def listed(self, who: str = "guest", **asked: Any) -> dict[str, Any]:
        """The items of a whole list, by id."""
        answer = await self.desk.ask(who, "skill:list", asked)
        return {item["id"]: item for item in answer["items"]}

    async def paths(self, id: str, who: str = "guest") -> list[str]:  # noqa: A002 - as the event's
        """The files of one skill."""
        (item,) = (await self.listed(who, id=id)).values()
        return [file["path"] for file in item["files"]]

    async def ask(self, who: str, event: str, data: dict[str, Any]) -> Any:
        """As a client asks: a failure is raised."""
        answer = await self.desk.answer(who, event, data)
        if answer.error is not None:
            raise error_of(answer)
        return answer.data

    async def failure(self, who: str, event: str, data: dict[str, Any]) -> Failure:
        """Why a question was not answered."""
        answer = await self.desk.answer(who, event, data)
        assert answer.error is not None, answer.data
        return answer.error

    def _gather(self) -> Gathered:
        found = self._scanner.scan([CapabilityDirectory(self.folder, "configured")])
        return Gathered(found.descriptors, found.problems)
