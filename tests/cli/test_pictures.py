"""graph: the same picture for people, for Graphviz and for Markdown."""

from xml.etree import ElementTree

import pytest
from tests.cli.shell import Shell


def test_the_svg_is_well_formed_and_names_what_it_shows(
    shell: Shell, contract: tuple[str, ...]
) -> None:
    done = shell.run("graph", "--svg", *contract)
    assert done.code == 0
    root = ElementTree.fromstring(done.out)  # noqa: S314 - our own text
    assert root.tag.endswith("svg")
    text = " ".join(root.itertext())
    for name in ("base_multi_agent", "reviewer", "state_write", "agent:terminate"):
        assert name in text


@pytest.mark.parametrize(
    ("form", "start"), [("--dot", "digraph"), ("--mermaid", "flowchart"), ("--svg", "<svg")]
)
def test_every_form_of_the_graph(
    shell: Shell, contract: tuple[str, ...], form: str, start: str
) -> None:
    whole = shell.run("graph", form, *contract).out
    part = shell.run("graph", form, "--profile", "quiet", *contract).out
    assert whole.startswith(start)
    assert part.startswith(start)
    assert "state_write" in whole
    assert "state_write" not in part
    answer = shell.json("graph", form, *contract)
    assert (answer["format"], answer["text"]) == (form.removeprefix("--"), whole)
    assert answer["source"]["catalogue"].endswith("contract/capabilities.yaml")


def test_a_graph_can_be_written_to_a_file(shell: Shell, contract: tuple[str, ...]) -> None:
    done = shell.run("graph", "--out", "graph.svg", *contract)
    assert done.out == ""
    assert (shell.folder / "graph.svg").read_text().startswith("<svg")


def test_text_from_definitions_cannot_break_out_of_the_picture(shell: Shell) -> None:
    text = "version: 1\ncapabilities:\n  a: {description: '<script>alert(1)</script>'}\n"
    path = shell.write("mine/capabilities.yaml", text)
    shell.write("mine/compositions/p.yaml", "name: p\ncapabilities: {a: true}\n")
    done = shell.run("graph", "--catalogue", str(path))
    assert "<script" not in done.out
