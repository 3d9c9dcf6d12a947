"""The picture of profiles and capabilities: complete, readable, and never more than a picture."""

import re
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from tests.policy.catalogues import World, compile_world, universe_of_names, worlds
from tests.policy.texts import CAPABILITIES, compiled

from remit.config.definitions.files import parse_definitions, read_files
from remit.errors import NotFoundError
from remit.policy.catalogue import Catalogue
from remit.policy.compile import compile_definitions
from remit.policy.graph.graph import (
    MAX_LINES,
    MAX_NODES,
    Node,
    Picture,
    picture,
    to_dot,
    to_mermaid,
)
from remit.policy.graph.svg import Box, lay_out, text_width, to_svg

SVG = "{http://www.w3.org/2000/svg}"
PARENT = "name: parent\ncapabilities: {spawning: true, network: true}"
CHILD = """
name: child
extends: parent
capabilities: {state_write: true}
disallowed_tools: [agent:terminate]
additional_tools: [Bash]
"""


@pytest.fixture
def catalogue() -> Catalogue:
    return compiled(CAPABILITIES, PARENT, CHILD)


def card(found: Picture, title: str) -> Node:
    return next(one for one in found.nodes if one.title == title)


def test_profiles_stand_first_and_what_is_required_stands_further_right(
    catalogue: Catalogue,
) -> None:
    columns = {one.title: one.column for one in picture(catalogue).nodes}
    assert columns["parent"] == columns["child"] == 0
    assert 0 < columns["state_write"] < columns["state_read"]
    assert 0 < columns["spawning"] < columns["messaging"]


def test_every_relation_is_an_edge_of_its_own_kind(catalogue: Catalogue) -> None:
    edges = {
        (e.source.split(":")[1], e.target.split(":")[1], e.kind) for e in picture(catalogue).edges
    }
    assert {
        ("parent", "spawning", "grants"),
        ("parent", "network", "pending"),
        ("child", "parent", "extends"),
        ("child", "state_write", "grants"),
        ("spawning", "messaging", "requires"),
        ("state_write", "state_read", "requires"),
    } == edges


def test_a_denied_event_is_marked_for_the_profile_that_denies_it(catalogue: Catalogue) -> None:
    marked = {
        line.text for line in card(picture(catalogue, "child"), "spawning").lines if line.denied
    }
    assert marked == {"agent:terminate"}
    assert not any(line.denied for line in card(picture(catalogue, "parent"), "spawning").lines)
    both = next(line for line in card(picture(catalogue), "spawning").lines if line.denied)
    assert both.note == "not for child"


def test_one_profile_shows_only_what_it_holds_or_waits_for(catalogue: Catalogue) -> None:
    titles = {one.title for one in picture(catalogue, "parent").nodes}
    assert titles == {"parent", "base", "spawning", "messaging", "network"}
    assert "review pending: parent" in card(picture(catalogue, "parent"), "network").marks


def test_model_tools_are_marked_apart_from_events(catalogue: Catalogue) -> None:
    kinds = {line.text: line.kind for line in card(picture(catalogue), "network").lines}
    assert kinds == {"web:fetch": "event", "WebFetch": "tool"}


def test_an_unknown_profile_is_refused_with_a_suggestion(catalogue: Catalogue) -> None:
    with pytest.raises(NotFoundError) as caught:
        picture(catalogue, "chil")
    assert "child" in caught.value.hint


def test_a_long_list_is_cut_but_never_hides_a_denial() -> None:
    events = [f"big:e{at:02}" for at in range(40)]
    text = 'capabilities:\n  big: {description: Big, event_patterns: ["big:*"]}'
    profile = "name: p\ncapabilities: [big]\ndisallowed_tools: [big:e39]"
    lines = card(picture(compiled(text, profile, events=events)), "big").lines
    assert len(lines) == MAX_LINES
    assert lines[-1].text == "+27 more"
    assert lines[-2].text == "big:e39"


def test_a_crowd_is_drawn_without_the_lists() -> None:
    many = [f"  c{at}: {{description: C, event_patterns: [a:e{at}]}}" for at in range(MAX_NODES)]
    text = "capabilities:\n" + "\n".join(many)
    found = compiled(text, "name: p\ncapabilities: [c1]", events=["a:e1"])
    assert all(one.lines == () for one in picture(found).nodes)
    assert card(picture(found, "p"), "c1").lines


HOSTILE = """
capabilities:
  evil:
    description: "</text><script>alert(1)</script> & \\"quoted\\" \\x07 ]]> --> \\\\ end"
    event_patterns: [a:b]
"""


def test_hostile_text_stays_text() -> None:
    found = picture(compiled(HOSTILE, "name: p\ncapabilities: [evil]", events=["a:b"]))
    svg = to_svg(found)
    root = ET.fromstring(svg)  # noqa: S314 - our own text, and that it parses is the point
    assert not list(root.iter(f"{SVG}script"))
    assert any("<script>" in (node.text or "") for node in root.iter(f"{SVG}text"))
    assert "<script" not in svg
    assert "<script" not in to_dot(found)
    assert "<script" not in to_mermaid(found)
    for line in to_mermaid(found).splitlines():
        assert line.count('"') in (0, 2)


def test_dot_quotes_names_and_closes_every_label(catalogue: Catalogue) -> None:
    text = to_dot(picture(catalogue))
    assert '"profile:child" -> "capability:state_write"' in text
    assert '<FONT COLOR="red"><S>agent:terminate' in text
    assert text.count("{") == text.count("}")


def test_mermaid_gives_every_card_a_number_of_its_own(catalogue: Catalogue) -> None:
    found = picture(catalogue)
    numbers = re.findall(r"^  (n\d+)\[", to_mermaid(found), re.MULTILINE)
    assert len(numbers) == len(set(numbers)) == len(found.nodes)


def test_the_svg_tells_its_title_to_those_who_cannot_see_it(catalogue: Catalogue) -> None:
    root = ET.fromstring(to_svg(picture(catalogue, "child")))  # noqa: S314
    assert root.get("role") == "img"
    labels = (root.get("aria-labelledby") or "").split()
    named = {node.get("id"): node.text for node in root if node.get("id")}
    assert all(named[label] for label in labels)


def test_the_svg_reads_in_light_and_dark_and_fetches_nothing(catalogue: Catalogue) -> None:
    svg = to_svg(picture(catalogue))
    assert "prefers-color-scheme: dark" in svg
    assert 'class="back"' in svg
    assert svg.replace("http://www.w3.org/2000/svg", "").count("://") == 0


def test_the_same_catalogue_gives_the_same_text_however_it_is_ordered() -> None:
    one, other = compiled(CAPABILITIES, PARENT, CHILD), compiled(CAPABILITIES, CHILD, PARENT)
    assert {c.id for c in picture(one).nodes} == {c.id for c in picture(other).nodes}
    assert to_svg(picture(one)) == to_svg(picture(compiled(CAPABILITIES, PARENT, CHILD)))


def overlap(one: Box, other: Box) -> bool:
    apart = one.x + one.width <= other.x or other.x + other.width <= one.x
    return not (apart or one.y + one.height <= other.y or other.y + other.height <= one.y)


def assert_tidy(found: Picture) -> None:
    layout = lay_out(found)
    for one, other in combinations(layout.boxes.values(), 2):
        assert not overlap(one, other), (one.node.id, other.node.id)
    for box in layout.boxes.values():
        assert box.x + box.width <= layout.width
        assert box.y + box.height <= layout.height
        for row in box.rows:
            assert row.y < box.height
            assert text_width(row.text) < box.width


@settings(max_examples=60)
@given(worlds())
def test_no_card_covers_another_and_no_text_leaves_its_card(world: World) -> None:
    catalogue = compile_world(world)
    assert_tidy(picture(catalogue))
    for name in catalogue.grants:
        found = picture(catalogue, name)
        assert_tidy(found)
        ET.fromstring(to_svg(found))  # noqa: S314


def test_the_starter_catalogue_is_drawn_whole(root: Path) -> None:
    files = read_files(root / "capabilities.yaml", root / "compositions")
    catalogue = compile_definitions(
        parse_definitions(files), universe_of_names(["system:health", "state:get"])
    )
    found = picture(catalogue)
    assert {one.title for one in found.nodes} == {*catalogue.grants, *catalogue.capabilities}
    assert_tidy(found)
