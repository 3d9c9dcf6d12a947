"""Relevance says how likely a hit serves a request; what is not likely to is not shown."""

import pytest
from tests.fakes import Desk, built_in_handlers, starter_files
from tests.features.discovery.catalogues import OFFICE, VECTORS, index_of, tool

from remit.features.discovery.embedding import Embedder, np
from remit.features.discovery.rank import Ranker, best
from remit.features.discovery.relevance import (
    REQUEST_SIGNALS,
    ROW_SIGNALS,
    WORDS_ALONE,
    calibration,
    calibrations,
)
from remit.features.discovery.view import View
from remit.model.descriptor import Descriptor

needs_vectors = pytest.mark.skipif(VECTORS is None, reason="the extra 'search' is not installed")
MODELS = [pytest.param(None, id="words"), pytest.param(VECTORS, id="vectors", marks=needs_vectors)]


def judged(
    request: str, model: Embedder | None, descriptors: tuple[Descriptor, ...] = OFFICE
) -> tuple[dict[str, float], float]:
    """The relevance of each hit by name, and how likely anything fits."""
    index = index_of(descriptors, vectors=model is not None)
    view = View(index, np.ones(len(index), np.bool_))
    ranking = Ranker(model).rank(view, request, view.allowed)
    rows = best(ranking.fused, view, 8, 0.0)
    likely, fits = ranking.relevance(rows, calibration(model.name if model else WORDS_ALONE))
    return {index.descriptors[row].name: one for row, one in zip(rows, likely, strict=True)}, fits


@pytest.fixture(scope="module")
def desk() -> Desk:
    return Desk(built_in_handlers(), starter_files())


@pytest.mark.parametrize(
    "query",
    [
        "average daily petrol price in each state of Australia",
        "my grandmother's apple pie",
        "steer the zeppelin north",
        "invoices of suppliers",
        "who won the chess championship of 1972?",
        "thank you so much, see you tomorrow",
        "I am a bit tired today",
    ],
)
async def test_what_no_tool_serves_gets_the_map_alone(desk: Desk, query: str) -> None:
    answer = await desk.ask("executor", "discovery:discover", {"query": query})
    assert (answer["fits"], answer["capabilities"]) == (False, [])
    assert (answer["summary"], answer["detail"]) == ("", "")
    assert "State" in answer["map"]


@pytest.mark.parametrize(
    "query",
    [
        "",
        " ",
        "x" * 9_000,
        "x " * 4_000,
        "状态 存储 天气",
        "погода в городе",
        "the of and",
        "\U0001f600",
    ],
)
async def test_what_is_no_request_gets_the_map_alone(desk: Desk, query: str) -> None:
    answer = await desk.ask("executor", "discovery:discover", {"query": query})
    assert (answer["fits"], answer["capabilities"]) == (False, [])
    assert answer["map"]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("keep a value for later", "tool:state:set"),
        ("what time is it in Tokyo", "tool:time:get_current_time"),
        ("save this text to notes.txt", "tool:file:write_file"),
        ("multiply 6 by 7", "tool:math:multiply"),
    ],
)
async def test_what_a_tool_serves_is_shown_as_likely(desk: Desk, query: str, wanted: str) -> None:
    answer = await desk.ask("operator", "discovery:discover", {"query": query})
    assert answer["fits"]
    assert answer["capabilities"][0]["id"] == wanted
    assert answer["capabilities"][0]["relevance"] > 0.1
    told = [one["relevance"] for one in answer["capabilities"] if "pulled_in_by" not in one]
    assert told == sorted(told, reverse=True)


@pytest.mark.parametrize("model", MODELS)
def test_a_good_request_is_likelier_than_one_that_only_shares_a_word(
    model: Embedder | None,
) -> None:
    good, fits = judged("send a mail to the customer", model)
    stray, doubt = judged("the royal mail of the nineteenth century sank near Cornwall", model)
    assert good["send_mail"] > 2 * stray.get("send_mail", 0.0)
    assert fits > 2 * doubt


@pytest.mark.parametrize("model", MODELS)
def test_a_tool_that_is_named_in_full_is_meant(model: Embedder | None) -> None:
    found, fits = judged("get_weather", model)
    assert (found["get_weather"], fits) == (1.0, 1.0)


@pytest.mark.parametrize("model", MODELS)
def test_no_row_is_likelier_than_that_anything_fits(model: Embedder | None) -> None:
    for request in ("send a mail", "rain tomorrow", "invoice", "translate it, then mail it"):
        found, fits = judged(request, model)
        assert all(one <= fits + 1e-6 for one in found.values())


def test_a_catalogue_of_one_is_no_reason_to_show_it() -> None:
    alone = (tool("print_document", "Print a document on paper"),)
    assert judged("print this document", None, alone)[1] > 0.3
    assert judged("feed the cat at noon", None, alone)[1] < 0.3


def test_many_equal_tools_are_each_less_likely() -> None:
    same = tuple(tool(f"print_{at}", "Print a document on paper") for at in range(50))
    found, _fits = judged("print a document", None, same)
    alone, _fits = judged("print a document", None, (*same[:1], *OFFICE))
    assert found["print_0"] < alone["print_0"]


def test_every_line_of_the_table_weighs_every_signal() -> None:
    assert WORDS_ALONE in calibrations()
    for line in calibrations().values():
        assert len(line.row.weights) == len(ROW_SIGNALS) + len(REQUEST_SIGNALS)
        assert len(line.fits.weights) == 3 * len(ROW_SIGNALS) + len(REQUEST_SIGNALS)


def test_a_model_that_the_table_does_not_know_is_weighed_by_words() -> None:
    assert calibration("somebody-elses") == calibrations()[WORDS_ALONE]
