"""What destroys does not lead where nobody asked for destruction."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.features.discovery.catalogues import VECTORS, descriptors, index_of, tool

from remit.features.discovery.embedding import np
from remit.features.discovery.index import Index, asks_for_destruction, is_destructive
from remit.features.discovery.rank import Ranker
from remit.features.discovery.view import View
from remit.model.descriptor import Descriptor

MEMORY = (
    tool("create_entities", "Create multiple new entities in the knowledge graph"),
    tool("add_observations", "Add new observations to existing entities in the knowledge graph"),
    tool("delete_entities", "Delete multiple entities and their relations from the graph"),
    tool("delete_observations", "Delete specific observations from entities in the graph"),
    tool("read_graph", "Read the entire knowledge graph"),
    tool("search_nodes", "Search for nodes in the knowledge graph"),
)


def first(index: Index, request: str) -> str:
    view = View(index, np.ones(len(index), np.bool_))
    scores = Ranker(VECTORS).rank(view, request, view.allowed).fused
    return index.descriptors[int(scores.argmax())].name


def _scores(found: Sequence[Descriptor], request: str) -> dict[str, float]:
    index = index_of(found)
    view = View(index, np.ones(len(index), np.bool_))
    fused = Ranker(None).rank(view, request, view.allowed).fused
    return {one.id: float(fused[row]) for row, one in enumerate(index.descriptors)}


@pytest.mark.parametrize(
    "asked",
    ["remember that Anna likes tea", "new observations about entities", "entities in the graph"],
)
def test_a_request_that_keeps_something_is_not_led_by_what_deletes(asked: str) -> None:
    index = index_of(MEMORY, vectors=True)
    assert not first(index, asked).startswith("delete")


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("delete the entities about Anna", "delete_entities"),
        ("get rid of observations that are wrong", "delete_observations"),
        ("delete_entities", "delete_entities"),
    ],
)
def test_a_request_that_asks_for_it_or_names_it_is_led_by_it(asked: str, name: str) -> None:
    assert first(index_of(MEMORY, vectors=True), asked) == name


@pytest.mark.parametrize(
    ("name", "destructive"),
    [
        ("delete_file", True),
        ("deleteFile", True),
        ("FileDelete", True),
        ("fs.remove", True),
        ("state:clear", True),
        ("undelete", False),
        ("nuclear_power", False),
        ("raindrops", False),
        ("list_files", False),
    ],
)
def test_a_verb_of_the_name_tells_what_destroys(name: str, *, destructive: bool) -> None:
    assert is_destructive(tool(name)) is destructive


def test_what_its_author_calls_destructive_is_so_whatever_its_name() -> None:
    assert is_destructive(tool("tidy", is_destructive=True))


@pytest.mark.parametrize("asked", ["Cancel my flight", "I no longer want it", "unsubscribe me"])
def test_other_words_ask_for_destruction_too(asked: str) -> None:
    assert asks_for_destruction(asked)


@given(descriptors(6), st.integers(0, 5))
@settings(max_examples=40)
def test_what_destroys_loses_and_all_others_keep_their_scores(
    found: list[Descriptor], at: int
) -> None:
    if at >= len(found):
        return
    flagged = list(found)
    flagged[at] = msgspec.structs.replace(found[at], is_destructive=True)
    plain, less = (_scores(each, "send mail to the city") for each in (found, flagged))
    assert less.pop(found[at].id) <= plain.pop(found[at].id)
    assert less == plain
