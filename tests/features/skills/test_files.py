"""The full text of a skill: read on demand, and only from where it belongs."""

import os
from pathlib import Path

import pytest

from remit.config.strict.frontmatter import MAX_MARKDOWN
from remit.errors import DefinitionError
from remit.features.skills.files import ContentReader
from remit.model.descriptor import SourceRef


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: x\nsecret: y\n---\n\n# Title\n\nText.\n")
    return folder


def source(folder: Path, name: str = "SKILL.md") -> SourceRef:
    return SourceRef("skill", content_file=name, root=str(folder))


def test_the_text_comes_without_its_frontmatter(folder: Path) -> None:
    assert ContentReader().read(source(folder)) == "# Title\n\nText."


def test_a_text_without_frontmatter_comes_whole(folder: Path) -> None:
    (folder / "a.md").write_text("---\na line was drawn above")
    assert ContentReader().read(source(folder, "a.md")) == "---\na line was drawn above"


def test_a_source_without_content_has_an_empty_text() -> None:
    assert ContentReader().read(SourceRef("event")) == ""


def test_an_edit_is_seen_even_when_it_hides_its_time(folder: Path) -> None:
    reader, path = ContentReader(), folder / "SKILL.md"
    before = path.stat()
    assert reader.read(source(folder)) == "# Title\n\nText."
    path.write_text(path.read_text().replace("Text.", "Next."))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert reader.read(source(folder)) == "# Title\n\nNext."


def test_many_texts_are_not_all_kept(folder: Path) -> None:
    reader = ContentReader()
    for number in range(200):
        (folder / f"{number}.md").write_text(str(number))
        assert reader.read(source(folder, f"{number}.md")) == str(number)
    assert len(reader._kept) == 64


def _swap_file(folder: Path) -> None:
    (folder / "SKILL.md").unlink()
    (folder / "SKILL.md").symlink_to("/etc/passwd")


def _pipe(folder: Path) -> None:
    (folder / "SKILL.md").unlink()
    os.mkfifo(folder / "SKILL.md")


HARM = {
    "a-link-out": (_swap_file, "SKILL.md", "outside"),
    "a-pipe": (_pipe, "SKILL.md", "not a file"),
    "deleted": (lambda folder: (folder / "SKILL.md").unlink(), "SKILL.md", "gone"),
    "a-way-up": (lambda folder: None, "../../etc/passwd", "outside"),
    "absolute": (lambda folder: None, "/etc/passwd", "absolute"),
    "too-large": (
        lambda folder: (folder / "SKILL.md").write_bytes(b"x" * (MAX_MARKDOWN + 1)),
        "SKILL.md",
        "more than",
    ),
    "not-utf-8": (lambda folder: (folder / "SKILL.md").write_bytes(b"\xff"), "SKILL.md", "UTF-8"),
}


@pytest.mark.parametrize(("harm", "name", "told"), HARM.values(), ids=HARM.keys())
def test_what_was_put_there_since_the_scan_is_not_read(
    folder: Path, harm: object, name: str, told: str
) -> None:
    reader = ContentReader()
    reader.read(source(folder))
    assert callable(harm)
    harm(folder)
    with pytest.raises(DefinitionError) as caught:
        reader.read(source(folder, name))
    assert told in caught.value.message
