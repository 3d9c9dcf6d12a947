"""The page on upstreams.yaml has a line for every key, and what it shows can be read."""

from pathlib import Path

from tests.docs.pages import ROOT, blocks, rows, sections

from remit.features.upstreams.file import inspect_upstreams
from remit.features.upstreams.kinds import SECRET, UPSTREAM_FIELDS, UPSTREAM_FILE

PAGE = ROOT / "docs" / "reference" / "upstreams.md"


def test_every_key_of_upstreams_yaml_is_documented_and_no_other() -> None:
    found = sections(PAGE)
    for title, fields in (
        ("Keys of upstreams.yaml", UPSTREAM_FILE.fields),
        ("Keys of a server", UPSTREAM_FIELDS),
        ("Keys of a secret", SECRET.fields),
    ):
        documented = rows(found[title])
        assert set(documented) == set(fields), title
        required = {name for name, field in fields.items() if field.required}
        assert {n for n, cells in documented.items() if ", required" in cells[0]} == required, title


def test_the_servers_that_the_page_on_upstreams_shows_load(tmp_path: Path) -> None:
    (block,) = blocks(PAGE)
    file = tmp_path / block.argument
    file.write_text(block.text, encoding="utf-8")
    found = inspect_upstreams(file)
    assert found.problems == ()
    assert [one.name for one in found.upstreams] == ["time", "github"]
