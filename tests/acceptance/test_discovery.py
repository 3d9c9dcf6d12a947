"""Discovery on a real daemon: folders that change, lessons that stay, and the command."""

import json
from pathlib import Path
from typing import Any

from tests.acceptance.site import Daemon, Site, eventually

SKILL = """---
name: {name}
description: {description}
category: {category}
---
# {name}

{body}
"""


def _add_skill(site: Site, name: str, description: str, body: str = "Do it well.") -> Path:
    folder = site.folder / ".remit" / "capabilities" / name
    folder.mkdir(parents=True)
    file = folder / "SKILL.md"
    text = SKILL.format(name=name, description=description, category="office", body=body)
    file.write_text(text, encoding="utf-8")
    return file


def _found(daemon: Daemon, query: str, **more: Any) -> list[str]:
    with daemon.operator() as remit:
        answer = remit.call("discovery:discover", {"query": query, **more})
    return [one["id"] for one in answer["capabilities"]]


def test_a_folder_is_followed_through_adds_edits_renames_and_deletes(site: Site) -> None:
    site.configure(watch=True)
    _add_skill(site, "taxes", "File the yearly taxes of a company")
    with site.serving() as daemon:
        assert _found(daemon, "yearly taxes", kind="skill") == ["skill:taxes"]
        file = _add_skill(site, "origami", "Fold birds out of paper")
        eventually(
            lambda: _found(daemon, "fold paper birds", kind="skill"),
            lambda found: found == ["skill:origami"],
        )
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("birds out of paper", "boats out of leaves"), encoding="utf-8")
        eventually(
            lambda: _found(daemon, "boats from leaves", kind="skill"),
            lambda found: found == ["skill:origami"],
        )
        file.parent.rename(file.parent.with_name("boats"))
        eventually(
            lambda: _found(daemon, "boats from leaves", kind="skill"),
            lambda found: found == ["skill:origami"],
        )
        (file.parent.with_name("boats") / "SKILL.md").unlink()
        eventually(
            lambda: _found(daemon, "boats from leaves", kind="skill"), lambda found: found == []
        )
        with daemon.operator() as remit:
            assert "origami" not in remit.call("discovery:stats")["categories"]
            assert "origami" not in json.dumps(remit.call("discovery:discover", {"query": "x"}))


def test_a_broken_skill_is_told_with_its_place_and_the_rest_go_on(site: Site) -> None:
    _add_skill(site, "taxes", "File the yearly taxes of a company")
    broken = _add_skill(site, "broken", "Never read")
    broken.write_text("---\nname: [\n---\n", encoding="utf-8")
    with site.serving() as daemon, daemon.operator() as remit:
        told = remit.call("discovery:refresh")
        assert [Path(problem["file"]).parent.name for problem in told["problems"]] == ["broken"]
        assert _found(daemon, "yearly taxes", kind="skill") == ["skill:taxes"]


def test_what_use_taught_survives_a_restart(site: Site) -> None:
    query = "zap the frobnicator into orbit"
    with site.serving() as daemon, daemon.operator() as remit:
        remit.call("discovery:feedback", {"id": "state:set", "worked": True, "query": query})
        assert remit.call("discovery:examples")["total"] == 1
    with site.serving() as daemon, daemon.operator() as remit:
        (lesson,) = remit.call("discovery:examples")["items"]
        assert (lesson["id"], lesson["query"]) == ("tool:state:set", query)
        assert _found(daemon, query)[0] == "tool:state:set"


def test_without_learning_nothing_is_read_or_written(site: Site) -> None:
    query = "zap the frobnicator into orbit"
    told = {"id": "state:set", "worked": True, "query": query}
    with site.serving() as daemon, daemon.operator() as remit:
        assert remit.call("discovery:feedback", told)["learned"]
    settings = site.folder / "remit.toml"
    before = settings.read_text(encoding="utf-8")
    settings.write_text(f"learn = false\n{before}", encoding="utf-8")
    with site.serving() as daemon, daemon.operator() as remit:
        assert _found(daemon, query) == []
        answer = remit.call("discovery:examples")
        assert (answer["total"], answer["learning"]) == (0, False)
        assert not remit.call("discovery:feedback", told | {"query": "other words"})["learned"]
    settings.write_text(before, encoding="utf-8")
    with site.serving() as daemon, daemon.operator() as remit:
        (lesson,) = remit.call("discovery:examples")["items"]
        assert lesson["query"] == query


def test_a_restart_embeds_nothing_again(site: Site) -> None:
    with site.serving() as daemon:
        _found(daemon, "anything at all")
    (vectors,) = (site.home / "cache").glob("vectors-*.bin")
    before = vectors.stat().st_mtime_ns
    with site.serving() as daemon:
        _found(daemon, "anything at all")
    assert vectors.stat().st_mtime_ns == before


def test_the_command_says_the_same_with_and_without_a_daemon(site: Site) -> None:
    _add_skill(site, "taxes", "File the yearly taxes of a company")
    arguments = ("discover", "yearly taxes", "--as", "observer")
    offline = site.answer(*arguments)
    assert offline.pop("source")["kind"] == "files"
    with site.serving():
        asked = site.answer(*arguments)
        assert asked.pop("source")["kind"] == "daemon"
        assert asked == offline
    assert offline["capabilities"][0]["id"] == "skill:taxes"
    assert offline["tokens"]["total"] <= 1850


def test_an_agent_whose_grant_shrinks_finds_less_at_once(site: Site) -> None:
    with site.serving() as daemon, daemon.operator() as remit:
        remit.call("agent:spawn", {"profile": "executor", "agent_id": "ann"})
        asked = {"query": "write a value of the state", "agent": "ann"}
        before = remit.call("discovery:discover", asked)
        remit.call("agent:update", {"agent_id": "ann", "profile": "observer"})
        after = remit.call("discovery:discover", asked)
    assert before["capabilities"][0]["id"] == "tool:state:set"
    assert "state:set" not in json.dumps(after["capabilities"])
    assert after["total_indexed"] < before["total_indexed"]
