"""skill:*: what discovery shows can be read, file by file, and nothing beside it."""

import hashlib
import os
import re
import tempfile
from base64 import b64decode
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.features.skills.skill_folder import TIDES, SkillFolder

from remit.features.skills import files as skill_files
from remit.features.skills import files as skill_folder
from remit.model import schema
from remit.text.words import estimate_tokens


@pytest.fixture
def site(tmp_path: Path) -> SkillFolder:
    made = SkillFolder(tmp_path / "caps")
    made.write("tides/SKILL.md", TIDES)
    made.write("tides/references/harbours.md", "# Harbours\n")
    return made


async def test_a_skill_is_listed_with_its_keys_and_the_digests_of_its_files(
    site: SkillFolder,
) -> None:
    answer = await site.desk.ask("guest", "skill:list")
    assert set(answer) == {"items", "total", "next", "revision"}
    (item,) = answer["items"]
    assert item == {
        "id": "skill:tides",
        "name": "tides",
        "title": "Tides",
        "description": "Read tables of tides",
        "content": "SKILL.md",
        "frontmatter": {
            "name": "tides",
            "description": "Read tables of tides",
            "license": "MIT",
            "metadata": {"version": "2.1"},
        },
        "deviations": [],
        "files": [_file("SKILL.md", TIDES), _file("references/harbours.md", "# Harbours\n")],
        "left_out": [],
    }


def _file(path: str, text: str) -> dict[str, object]:
    raw = text.encode()
    return {"path": path, "size": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}


async def test_a_file_is_read_to_the_last_byte(site: SkillFolder) -> None:
    files = {"crlf.md": b"\xef\xbb\xbfa\r\nb", "pixel.png": b"\x89PNG\x00\xff", "bell.txt": b"\x07"}
    for path, raw in files.items():
        site.write(f"tides/{path}", raw)
    seen = {}
    for path, raw in files.items():
        asked = {"id": "tides", "path": path}
        answer = await site.desk.ask("guest", "skill:read", asked)
        is_text = answer["encoding"] == "utf-8"
        seen[path] = is_text
        content = answer["content"]
        assert (content.encode() if is_text else b64decode(content)) == raw
        assert answer["sha256"] == hashlib.sha256(raw).hexdigest()
        assert (answer["id"], answer["path"], answer["size"]) == ("skill:tides", path, len(raw))
    assert seen == {"crlf.md": True, "pixel.png": False, "bell.txt": False}
    assert (await site.desk.ask("guest", "skill:read", {"id": "skill:tides"}))["content"] == TIDES


async def test_an_edit_shows_at_once_in_the_digests(site: SkillFolder) -> None:
    before = (await site.listed())["skill:tides"]["files"][1]
    (site.folder / "tides/references/harbours.md").write_text("# Havens!!\n")  # the same length
    after = (await site.listed())["skill:tides"]["files"][1]
    assert before != after == _file("references/harbours.md", "# Havens!!\n")


async def test_a_skill_of_a_capability_is_for_its_holders_alone(site: SkillFolder) -> None:
    site.skill("taxes")
    assert set(await site.listed("clerk")) == {"skill:taxes", "skill:tides"}
    assert set(await site.listed("guest")) == {"skill:tides"}
    assert await site.desk.ask("clerk", "skill:read", {"id": "taxes"})
    for event in ("skill:list", "skill:read"):
        hidden = await site.failure("guest", event, {"id": "skill:taxes"})
        absent = await site.failure("guest", event, {"id": "skill:texas"})
        assert hidden.code == absent.code == "not_found"
        assert hidden.message.replace("taxes", "texas") == absent.message
        assert hidden.hint == absent.hint
        assert "taxes" not in hidden.hint


async def test_who_may_not_use_the_events_is_told_nothing(site: SkillFolder) -> None:
    for event, data in (("skill:list", {}), ("skill:read", {"id": "tides"})):
        assert (await site.failure("stranger", event, data)).code == "denied"


async def test_a_misspelt_name_is_met_with_the_nearest_one(site: SkillFolder) -> None:
    told = await site.failure("guest", "skill:read", {"id": "skill:tidse"})
    assert "'skill:tides'" in told.hint
    told = await site.failure("guest", "skill:read", {"id": "tides", "path": "SKILLS.md"})
    assert (told.code, told.hint) == ("not_found", "did you mean 'SKILL.md'?")


@pytest.mark.parametrize(
    "path",
    [
        *("", ".", "..", "/", "references", "references/", "./SKILL.md", "references/../SKILL.md"),
        *("../secret", "../tides/SKILL.md", "/etc/passwd", "SKILL.md/", "a\x00b", "\ud800"),
    ],
)
async def test_only_the_paths_of_the_list_can_be_read(site: SkillFolder, path: str) -> None:
    site.write("secret", "s")
    told = await site.failure("guest", "skill:read", {"id": "tides", "path": path})
    assert told.code in ("not_found", "invalid_data")


async def test_links_lead_to_files_of_the_same_skill_only(
    site: SkillFolder, tmp_path: Path
) -> None:
    outside = tmp_path / "secret.md"
    outside.write_text("secret")
    site.link("tides/out.md", outside)
    site.link("tides/up", "..")
    site.link("tides/round", ".")
    site.link("tides/nowhere.md", "absent.md")
    site.write("tides/.git/config", "secret")
    site.link("tides/hidden.md", ".git/config")
    site.link("tides/same.md", "references/harbours.md")
    os.mkfifo(site.folder / "tides" / "pipe")
    assert await site.paths("tides") == ["SKILL.md", "references/harbours.md", "same.md"]
    for path in ("out.md", "up/tides/SKILL.md", "round/SKILL.md", "hidden.md", "pipe"):
        told = await site.failure("guest", "skill:read", {"id": "tides", "path": path})
        assert told.code == "not_found"


async def test_a_link_that_is_swapped_after_the_list_leads_nowhere(
    site: SkillFolder, tmp_path: Path
) -> None:
    assert "references/harbours.md" in await site.paths("tides")
    (tmp_path / "secret.md").write_text("secret")
    file = site.folder / "tides" / "references" / "harbours.md"
    file.unlink()
    file.symlink_to(tmp_path / "secret.md")
    asked = {"id": "tides", "path": "references/harbours.md"}
    assert (await site.failure("guest", "skill:read", asked)).code == "not_found"


async def test_what_is_hidden_derived_or_ours_is_no_file_of_a_skill(site: SkillFolder) -> None:
    site.write("tides/.env", "TOKEN=1")
    site.write("tides/__pycache__/a.pyc", "x")
    site.write("tides/scripts/run.py", "print()")
    site.write("taxes/SKILL.md", "---\nname: taxes\ndescription: d\n---\nx")
    manifest = "name: taxes\nkind: skill\ndescription: d\ncapabilities: [accounting]\n"
    site.write("taxes/CAPABILITY.yaml", manifest)
    assert await site.paths("tides") == ["SKILL.md", "references/harbours.md", "scripts/run.py"]
    assert await site.paths("taxes", "clerk") == ["SKILL.md"]


async def test_a_skill_inside_of_another_is_not_read_through_it(site: SkillFolder) -> None:
    site.write("SKILL.md", "---\nname: whole\ndescription: d\n---\nx")
    site.write("notes.md", "of the whole")
    site.skill("taxes")
    site.write("taxes/rates.md", "secret")
    site.write("broken/SKILL.md", "no frontmatter, so nobody finds it")
    site.write("broken/rates.md", "secret")
    assert await site.paths("whole") == ["SKILL.md", "notes.md"]
    for path in ("taxes/SKILL.md", "taxes/rates.md", "broken/rates.md", "tides/SKILL.md"):
        told = await site.failure("guest", "skill:read", {"id": "whole", "path": path})
        assert told.code == "not_found"
        assert "taxes" not in told.hint


async def test_what_is_too_large_is_left_out_and_told(
    site: SkillFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skill_files, "MAX_FILE", 200)
    monkeypatch.setattr(skill_files, "MAX_TOTAL", 300)
    monkeypatch.setattr(skill_files, "MAX_FILES", 4)
    site.write("tides/A_large.bin", b"x" * 201)
    site.write("tides/B_much.bin", b"x" * 200)
    for name in "cdef":
        site.write(f"tides/{name}", "x")
    (item,) = (await site.listed()).values()
    assert [file["path"] for file in item["files"]] == ["SKILL.md", "c", "d", "e"]
    assert {one["path"]: one["reason"] for one in item["left_out"]} == {
        "A_large.bin": "more than 200 bytes",
        "B_much.bin": "all files together have more than 300 bytes",
        "f": "a skill has at most 4 files",
        "references/harbours.md": "a skill has at most 4 files",
    }
    for path in ("A_large.bin", "B_much.bin", "f"):
        told = await site.failure("guest", "skill:read", {"id": "tides", "path": path})
        assert told.code == "not_found"


async def test_a_walk_is_bounded_and_a_folder_is_read_whole_or_not(
    site: SkillFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skill_folder, "MAX_ENTRIES", 12)
    for number in range(12):
        site.write(f"tides/many/{number}", "x")
    site.write("tides/" + "n" * 201, "x")
    (item,) = (await site.listed()).values()
    assert [file["path"] for file in item["files"]] == ["SKILL.md", "references/harbours.md"]
    reasons = " ".join(one["reason"] for one in item["left_out"])
    assert "not read" in reasons
    assert "more than 200 characters" in reasons


async def test_folders_that_lie_too_deep_are_left_out(
    site: SkillFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skill_folder, "MAX_DEPTH", 2)
    site.write("tides/a/b/c/deep.md", "x")
    site.write("tides/a/b/less.md", "x")
    (item,) = (await site.listed()).values()
    assert [file["path"] for file in item["files"]][1:] == ["a/b/less.md", "references/harbours.md"]
    assert [one["path"] for one in item["left_out"]] == ["a/b/c"]


async def test_a_name_that_is_no_text_is_left_out(site: SkillFolder) -> None:
    site.write("tides/line\nbreak.md", "x")
    site.write(os.fsdecode(b"tides/\xff.md"), "x")
    (item,) = (await site.listed()).values()
    assert len(item["files"]) == 2
    assert item["left_out"] == [{"path": ".", "reason": "a name in it is not plain text"}]


async def test_a_long_list_comes_in_pages_that_fit_into_a_message(
    site: SkillFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        site.skill(f"s{number}")
    whole = await site.listed()
    for limit, room in ((2, schema.BODY_BYTES), (100, 1)):
        monkeypatch.setattr("remit.features.skills.views.BODY_BYTES", room)
        pages: list[dict[str, Any]] = []
        after: str | None = ""
        while after is not None:
            asked = {"limit": limit, "after": after}
            page = await site.desk.ask("guest", "skill:list", asked)
            assert page["total"] == 6
            pages.append({item["id"]: item for item in page["items"]})
            after = page["next"]
        assert len(pages) == (3 if limit == 2 else 6)
        assert {name: item for page in pages for name, item in page.items()} == whole


async def test_without_files_a_list_is_the_same_but_for_them(site: SkillFolder) -> None:
    (whole,) = (await site.listed()).values()
    (short,) = (await site.listed(files=False)).values()
    assert short == {key: whole[key] for key in whole if key not in ("files", "left_out")}


async def test_a_skill_that_is_no_skill_by_the_standard_says_why(site: SkillFolder) -> None:
    site.write("Old_One/SKILL.md", "---\ndescription: d\n---\nx")
    site.write("long/SKILL.md", f"---\nname: long\ndescription: {'d' * 1025}\n---\nx")
    site.write("bare/SKILL.md", "---\nname: bare\n---\nThe first words.")
    manifest = "name: papers\nkind: skill\ndescription: d\ncontent: guide.md\n"
    site.write("papers/CAPABILITY.yaml", manifest)
    site.write("papers/guide.md", "x")
    site.write("other/CAPABILITY.yaml", manifest.replace("papers", "other")[:-18])
    site.write("other/SKILL.md", "---\nname: elsewhere\ndescription: d\n---\nx")
    said = {name: item["deviations"] for name, item in (await site.listed()).items()}
    assert said == {
        "skill:Old_One": [
            "'name' must be lowercase letters, digits and single hyphens, at most 64"
        ],
        "skill:bare": ["'description' must be a text"],
        "skill:long": ["'description' has more than 1,024 characters"],
        "skill:other": ["'name' is 'elsewhere', and its id is 'skill:other'"],
        "skill:papers": ["its text is not a file SKILL.md"],
        "skill:tides": [],
    }


async def test_keys_mean_what_they_mean_to_other_readers_of_yaml(site: SkillFolder) -> None:
    keys = (
        "a: True\nb: 'True'\nc: no\nd: 1.10\ne: 007\nf: 0x1F\ng: 1e3\nh: ~\ni: [1, x]\n"
        "j: 2024-01-01\nk: 99999999999999999999\nl: .inf\nm: +12\nn: 0o17\no: |\n  two\n  lines\n"
    )
    site.skill("keys", keys)
    found = (await site.listed())["skill:keys"]["frontmatter"]
    values = [True, "True", "no", 1.1, 7, 31, 1000.0, None, [1, "x"], "2024-01-01", 1e20, ".inf"]
    values += [12, 15, "two\nlines\n"]
    assert [found[key] for key in "abcdefghijklmno"] == values


async def test_a_folder_that_went_away_since_it_was_found_has_no_files(site: SkillFolder) -> None:
    await site.listed()
    (site.folder / "tides").rename(site.folder.parent / "moved")
    (item,) = (await site.listed()).values()
    assert (item["files"], item["frontmatter"]) == ([], {})
    assert (await site.failure("guest", "skill:read", {"id": "tides"})).code == "not_found"


class Bound(NamedTuple):
    """Who sees a skill: what capabilities and its own file say, and the tool that it needs."""

    named: frozenset[str]
    own: frozenset[str]
    needs: str

    def allowed(self, held: set[str]) -> bool:
        both = self.named & self.own if self.named and self.own else self.named | self.own
        free = not self.named and not self.own
        return (free or bool(both & held)) and self.needs != "key:list"


BOUND = st.builds(
    Bound,
    st.frozensets(st.sampled_from(["c1", "c2"])),
    st.frozensets(st.sampled_from(["c1", "c2", "c3"])),
    st.sampled_from(["", "state:get", "key:list"]),
)


@given(skills=st.lists(BOUND, max_size=4), held=st.sets(st.sampled_from(["c1", "c2"])))
@settings(max_examples=25, deadline=None)
def test_listed_is_readable_is_what_discovery_describes_and_no_more(
    skills: list[Bound], held: set[str]
) -> None:
    names = [f"s{number}" for number in range(len(skills))]
    catalogue = """
  skills: {description: d, event_patterns: ["skill:*"], always_included: true}
  discovery: {description: d, event_patterns: ["discovery:describe"], always_included: true}
  reading: {description: d, event_patterns: ["state:get"], always_included: true}
  c3: {description: d}
"""
    for capability in ("c1", "c2"):
        bound = [name for name, one in zip(names, skills, strict=True) if capability in one.named]
        catalogue += f"  {capability}: {{description: d, skills: [{', '.join(bound)}]}}\n"
    with tempfile.TemporaryDirectory() as folder:
        who = f"capabilities: [{', '.join(sorted(held))}]"
        site = SkillFolder(Path(folder), catalogue, who=who)
        for name, one in zip(names, skills, strict=True):
            site.write(f"{name}/SKILL.md", f"---\nname: {name}\ndescription: d\n---\nx")
            own = f"capabilities: [{', '.join(one.own)}]\n" if one.own else ""
            needs = f"required_tools: ['{one.needs}']\n" if one.needs else ""
            manifest = f"name: {name}\nkind: skill\ndescription: d\n{own}{needs}"
            site.write(f"{name}/CAPABILITY.yaml", manifest)
        anyio.run(_compare, site, names, skills, held)


async def _compare(
    site: SkillFolder, names: list[str], skills: list[Bound], held: set[str]
) -> None:
    listed = set(await site.listed("who"))
    for name, one in zip(names, skills, strict=True):
        read = await site.desk.answer("who", "skill:read", {"id": name})
        told = await site.desk.answer("who", "discovery:describe", {"id": f"skill:{name}"})
        seen = {f"skill:{name}" in listed, read.error is None, told.error is None}
        assert seen == {one.allowed(held)}
        if read.error is not None:
            hinted = set(re.findall(r"skill:\w+", read.error.hint))
            assert hinted <= listed


async def test_what_is_read_of_a_skill_is_on_the_bill(site: SkillFolder) -> None:
    await site.desk.ask("guest", "skill:read", {"id": "tides"})
    await site.desk.ask("guest", "skill:list")
    bills = site.desk.kernel.bills
    assert bills.bill("ann").sent == bills.sent["skills"] == estimate_tokens(TIDES)
