"""Directories of capabilities: what is found, what wins, and what an ill-meant one can do."""

import os
import shutil
from pathlib import Path

import msgspec
import pytest

from remit.config.strict.frontmatter import MAX_MARKDOWN
from remit.config.strict.kinds import Report
from remit.features.skills import directories as capability_folders
from remit.features.skills.directories import (
    CapabilityDirectory,
    DirectoryScan,
    DirectoryScanner,
    FolderReader,
    directories,
)


@pytest.fixture
def caps(tmp_path: Path) -> Path:
    folder = tmp_path / "caps"
    folder.mkdir()
    return folder


def skill(folder: Path, name: str = "", description: str = "Helps") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {name or folder.name}\ndescription: {description}\n---\nThe text.\n"
    (folder / "SKILL.md").write_text(text)
    return folder


def manifest(folder: Path, name: str = "", kind: str = "tool", **keys: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    given = {"name": name or folder.name, "kind": kind, "description": "Helps"} | keys
    (folder / "CAPABILITY.yaml").write_text("".join(f"{k}: {v}\n" for k, v in given.items()))
    return folder


def scanned(*folders: Path) -> DirectoryScan:
    found = DirectoryScanner().scan(
        [CapabilityDirectory(folder, "configured") for folder in folders]
    )
    msgspec.json.encode(found)  # whatever is told can be sent
    return found


def ids(found: DirectoryScan) -> list[str]:
    return [one.id for one in found.descriptors]


def codes(found: DirectoryScan) -> list[str]:
    return [one.code for one in found.problems]


def test_every_kind_of_file_is_found(caps: Path) -> None:
    skill(caps / "group" / "review")
    manifest(caps / "docs")
    (caps / "extensions.yaml").write_text(
        "extensions: [{name: giphy, description: x}]\nchannels: [{name: mail, description: x}]"
    )
    found = scanned(caps)
    assert ids(found) == ["channel:mail", "extension:giphy", "skill:review", "tool:docs"]
    assert found.problems == ()


def test_a_directory_may_be_one_skill_itself(caps: Path) -> None:
    skill(caps, "solo")
    skill(caps / "other")
    assert ids(scanned(caps)) == ["skill:other", "skill:solo"]


def test_a_manifest_takes_the_skill_beside_it_as_its_text(caps: Path) -> None:
    skill(manifest(caps / "docs", kind="skill"))
    (found,) = scanned(caps).descriptors
    assert (found.id, found.source.kind) == ("skill:docs", "manifest")
    assert found.source.content_file == "SKILL.md"


def test_what_lies_below_a_capability_belongs_to_it(caps: Path) -> None:
    skill(caps / "a")
    skill(caps / "a" / "examples" / "b")
    assert ids(scanned(caps)) == ["skill:a"]


def test_hidden_folders_and_other_files_are_passed_over(caps: Path) -> None:
    skill(caps / ".git" / "a")
    skill(caps / "b" / ".old" / "c")
    (caps / "README.md").write_text("x")
    assert scanned(caps) == DirectoryScan()


def test_a_catalogue_of_extensions_counts_at_the_top_only(caps: Path) -> None:
    (caps / "a").mkdir()
    (caps / "a" / "extensions.yaml").write_text("extensions: [{name: x, description: x}]")
    assert ids(scanned(caps)) == []


def test_the_real_skills_load_and_the_broken_one_is_shown(shared_data: Path) -> None:
    if not (shared_data / "skills").is_dir():
        pytest.skip("no skills in shared/data")
    found = scanned(shared_data / "skills")
    assert len(found.descriptors) == 87
    (problem,) = found.problems
    assert str(problem.place).endswith("curated/social-broadcast/SKILL.md:4:76")
    assert "^" in str(problem)
    github = next(one for one in found.descriptors if one.id == "skill:github")
    assert (github.category, len(github.required_tools)) == ("developer", 26)


# ---- which one counts ----


def test_the_stated_order_is_user_workspace_and_then_the_setting(tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    found = directories(env, tmp_path, [Path("a"), tmp_path / "b"])
    assert [(str(one.path.relative_to(tmp_path)), one.source) for one in found] == [
        ("config/remit/capabilities", "user"),
        (".remit/capabilities", "workspace"),
        ("a", "configured"),
        ("b", "configured"),
    ]


def test_a_directory_that_is_named_twice_counts_where_it_is_strongest(tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    (tmp_path / "link").symlink_to(tmp_path / ".remit" / "capabilities")
    found = directories(env, tmp_path, [tmp_path / "link", tmp_path / "a", tmp_path / "a"])
    assert [one.path.name for one in found] == ["capabilities", "link", "a"]


def test_a_later_directory_overrides_by_id_and_says_so(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        skill(tmp_path / name / "x", "review", description=name)
    skill(tmp_path / "one" / "y")
    found = scanned(*(tmp_path / name for name in ("one", "two", "three")))
    assert ids(found) == ["skill:review", "skill:y"]
    assert found.descriptors[0].description == "three"
    assert [(one.id, one.by.file.split("/")[-3]) for one in found.overridden] == [
        ("skill:review", "two"),
        ("skill:review", "three"),
    ]
    assert found.problems == ()


def test_of_two_equal_ids_in_one_directory_the_first_path_counts(caps: Path) -> None:
    skill(caps / "b", "same", description="second")
    skill(caps / "a", "same", description="first")
    found = scanned(caps)
    assert [one.description for one in found.descriptors] == ["first"]
    (problem,) = found.problems
    assert (problem.code, Path(problem.place.file).parent.name) == ("duplicate_id", "b")
    assert str(caps / "a") in problem.message


def test_a_missing_directory_is_told_only_when_somebody_named_it(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    (problem,) = DirectoryScanner().scan([CapabilityDirectory(missing, "configured")]).problems
    assert (problem.code, problem.is_error) == ("not_found", False)
    assert (
        DirectoryScanner().scan(
            [CapabilityDirectory(missing, "user"), CapabilityDirectory(missing, "workspace")]
        )
        == DirectoryScan()
    )


# ---- what is wrong with one file ----


BAD_FILES = {
    "broken-yaml": (lambda path: path.write_bytes(b"---\na: [\n---\n"), "yaml_syntax"),
    "not-utf-8": (lambda path: path.write_bytes(b"---\na: \xff\n---\n"), "not_utf8"),
    "empty": (lambda path: path.write_bytes(b""), "empty_file"),
    "too-large": (lambda path: path.write_bytes(b"x" * (MAX_MARKDOWN + 1)), "too_large"),
    "a-folder": (lambda path: path.mkdir(), "unreadable"),
    "a-pipe": (os.mkfifo, "unreadable"),
    "a-link-to-a-device": (lambda path: path.symlink_to("/dev/zero"), "unreadable"),
    "a-link-out": (lambda path: path.symlink_to("/etc/passwd"), "unreadable"),
    "a-link-to-nothing": (lambda path: path.symlink_to("nothing"), "unreadable"),
    "a-link-in-a-circle": (lambda path: path.symlink_to("SKILL.md"), "unreadable"),
    "a-link-to-a-sibling": (lambda path: path.symlink_to("../good/SKILL.md"), "unreadable"),
}


@pytest.mark.parametrize(("make", "code"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_one_bad_file_is_told_and_the_others_are_read(caps: Path, make: object, code: str) -> None:
    skill(caps / "good")
    (caps / "bad").mkdir()
    assert callable(make)
    make(caps / "bad" / "SKILL.md")
    found = scanned(caps)
    assert ids(found) == ["skill:good"]
    (problem,) = found.problems
    assert (problem.code, problem.place.file) == (code, str(caps / "bad" / "SKILL.md"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_told_and_the_others_are_read(caps: Path) -> None:
    skill(caps / "good")
    (skill(caps / "shut-file") / "SKILL.md").chmod(0)
    skill(caps / "shut-folder").chmod(0)
    found = scanned(caps)
    (caps / "shut-folder").chmod(0o700)
    assert (ids(found), codes(found)) == (["skill:good"], ["unreadable", "unreadable"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_not_read(caps: Path) -> None:
    (caps / "bad").mkdir()
    try:
        os.mknod(caps / "bad" / "SKILL.md", 0o20644, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("devices cannot be made here")
    assert codes(scanned(caps)) == ["unreadable"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("skill.md", "SKILL.md"),
        ("CAPABILITY.yml", "CAPABILITY.yaml"),
        ("extensions.yml", "extensions.yaml"),
    ],
)
def test_a_name_that_is_almost_right_is_told(caps: Path, name: str, meant: str) -> None:
    (caps / "a").mkdir()
    (caps / "a" / name).write_text("x")
    (problem,) = scanned(caps).problems
    assert (problem.code, problem.is_error) == ("misspelt_file", False)
    assert meant in problem.hint


# ---- folders ----


def test_a_linked_folder_that_leads_out_is_refused(caps: Path) -> None:
    skill(caps.with_name("caps-evil") / "x")
    (caps / "a").symlink_to(caps.with_name("caps-evil"))
    (caps / "b").symlink_to("/")
    found = scanned(caps)
    assert (ids(found), codes(found)) == ([], ["leads_out", "leads_out"])


def test_links_inside_are_followed_once(caps: Path) -> None:
    skill(caps / "real" / "a")
    (caps / "real" / "up").symlink_to(caps)
    (caps / "other").symlink_to("real")
    found = scanned(caps)
    assert (ids(found), codes(found)) == (["skill:a"], [])


def test_a_directory_that_is_a_link_itself_is_read(caps: Path) -> None:
    skill(caps / "a")
    link = caps.with_name("link")
    link.symlink_to(caps)
    assert ids(scanned(link)) == ["skill:a"]


def test_folders_are_read_to_a_stated_depth(caps: Path) -> None:
    deep = caps.joinpath(*"123456")
    skill(deep)
    skill(caps.joinpath(*"abcdefg"))
    found = scanned(caps)
    assert (ids(found), codes(found)) == (["skill:6"], ["too_deep"])


@pytest.mark.parametrize("name", [b"a\xff", b"a\x1b[31m", b"a\nb", "a\u202eb".encode()])
def test_a_folder_whose_name_is_no_text_is_told_and_can_be_printed(caps: Path, name: bytes) -> None:
    skill(caps / "good")
    (caps / os.fsdecode(name)).mkdir()
    found = scanned(caps)
    (problem,) = found.problems
    assert (ids(found), problem.code) == (["skill:good"], "invalid_name")
    assert str(problem.place).isprintable()


def test_more_than_a_directory_may_hold_is_told_and_the_first_are_kept(
    caps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capability_folders, "MAX_CAPABILITIES", 3)
    for name in "abc":
        skill(caps / name)
    assert codes(scanned(caps)) == []
    skill(caps / "d")
    found = scanned(caps)
    assert (ids(found), codes(found)) == (["skill:a", "skill:b", "skill:c"], ["too_large"])


def test_a_folder_of_very_many_files_ends_the_walk(
    caps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capability_folders, "MAX_ENTRIES", 50)
    skill(caps / "a")
    (caps / "b").mkdir()
    for number in range(60):
        (caps / "b" / f"{number}.txt").touch()
    assert codes(scanned(caps)) == ["too_large"]


def test_ten_thousand_other_files_do_not_hide_the_skills(caps: Path) -> None:
    (caps / "data").mkdir()
    for number in range(10_000):
        (caps / "data" / f"{number}.json").touch()
    for number in range(500):
        skill(caps / f"s{number}")
    found = scanned(caps)
    assert (len(found.descriptors), found.problems) == (500, ())


def test_a_thousand_mistakes_fill_a_page_and_are_counted(caps: Path) -> None:
    for number in range(1_000):
        folder = caps / f"s{number}"
        folder.mkdir()
        (folder / "SKILL.md").touch()
    found = scanned(caps)
    assert (len(found.problems), found.problem_count) == (200, 1_000)


def test_what_is_deleted_during_the_walk_is_simply_not_there(caps: Path) -> None:
    for name in "abc":
        skill(caps / name)
    report = Report()
    walk = capability_folders.Walk(caps, report).folders()
    first = next(walk)
    shutil.rmtree(caps)
    assert [first.path.name, *(folder.path.name for folder in walk)] == ["a"]
    assert report.problems == []


@pytest.mark.parametrize("gone", ["SKILL.md", "."])
def test_what_is_deleted_before_it_is_read_is_simply_not_there(caps: Path, gone: str) -> None:
    report = Report()
    folder = next(capability_folders.Walk(skill(caps / "a"), report).folders())
    target = folder.path / gone
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    assert FolderReader({}, report).descriptors(folder) == ()
    assert report.problems == []


# ---- again ----


def test_a_second_reading_equals_a_first_one(caps: Path) -> None:
    scanner = DirectoryScanner()
    searched = [CapabilityDirectory(caps, "configured")]

    def both() -> DirectoryScan:
        again = scanner.scan(searched)
        assert again == DirectoryScanner().scan(searched)
        return again

    skill(caps / "a")
    (manifest(caps / "docs") / "schema.json").write_text("{}")
    (caps / "bad").mkdir()
    (caps / "bad" / "SKILL.md").write_text("no")
    assert ids(both()) == ["skill:a", "tool:docs"]
    skill(caps / "a", description="New")
    (caps / "docs" / "schema.json").write_text('{"properties": {"q": {}}}')
    shutil.rmtree(caps / "bad")
    found = both()
    assert (found.descriptors[0].description, found.problems) == ("New", ())
    assert [one.name for one in found.descriptors[1].parameters] == ["q"]
    (caps / "a").rename(caps / "b")
    shutil.rmtree(caps / "docs")
    assert [one.source.root for one in both().descriptors] == [str(caps / "b")]
