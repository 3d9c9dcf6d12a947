"""A desk with a registry: skills and counts that a test puts there, and two callers."""

from pathlib import Path
from typing import Any

from tests.fakes import starter_files
from tests.family import Family

from remit.features.discovery.service import Discovery, Gathered
from remit.features.registry.resolve import Rate, Rated
from remit.features.registry.service import CapabilityRegistry
from remit.model.descriptor import Descriptor, SourceRef


async def registry_family() -> Family:
    """A planner that may link, and a reader that may only look."""
    made = Family(starter_files())
    await made.client("planner", "coordinator")
    await made.client("reader", "observer")
    return made


def skill(name: str, text: str = "", *, folder: Path | None = None, **more: Any) -> Descriptor:
    source = SourceRef("skill")
    if folder is not None:
        (folder / name).mkdir()
        (folder / name / "SKILL.md").write_text(text, encoding="utf-8")
        source = SourceRef("skill", content_file="SKILL.md", root=str(folder / name))
    return Descriptor(id=f"skill:{name}", kind="skill", name=name, source=source, **more)


class Counts:
    """What was tried, as a test says it."""

    def __init__(self) -> None:
        self.rates: dict[tuple[str, str], Rate] = {}
        self.latest: dict[str, list[bool]] = {}

    def score(self, name: str) -> Rated:
        return self.rates.get((name, ""), Rate())

    def by_tag(self, name: str, tag: str) -> Rated:
        return self.rates.get((name, f"#{tag}"), Rate())

    def by_model(self, name: str, model: str) -> Rated:
        return self.rates.get((name, f"@{model}"), Rate())

    def calls(self, name: str) -> tuple[int, list[bool]]:
        found = self.latest.get(name, [])
        return len(found), found[-10:]


def registry(family: Family) -> CapabilityRegistry:
    return family.kernel.service(CapabilityRegistry)


def put_skills(family: Family, *skills: Descriptor) -> None:
    discovery = family.kernel.service(Discovery)
    discovery._gather = lambda: Gathered(skills)
    discovery.folders_changed()


async def linked(family: Family, who: str, *needs: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = await family.ask(who, "link:mission", {"needs": needs} | more)
    return found


def visible(answer: dict[str, Any]) -> list[str]:
    return [one["id"] for one in answer["tools"]["visible"]]
