"""An index that was refreshed equals one that was built from nothing, and embeds nothing twice."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.features.discovery.catalogues import OFFICE, REQUESTS, VECTORS, descriptors, tool

from remit.features.discovery.embedding import Floats, VectorCache, np, text_of
from remit.features.discovery.index import Index, Indexer
from remit.features.discovery.learning.lessons import NO_LESSONS, Lessons
from remit.features.discovery.rank import Ranker
from remit.features.discovery.view import View
from remit.model.descriptor import Descriptor, Parameter


class Letters:
    """A tiny embedder: how often each letter stands in a text."""

    name = "letters"
    dimensions = 26
    is_slow = False

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Floats:
        self.texts += texts
        rows = [[text.lower().count(chr(97 + at)) + 0.01 for at in range(26)] for text in texts]
        found = np.array(rows, np.float32).reshape(-1, 26)
        unit: Floats = found / np.linalg.norm(found, axis=1, keepdims=True)
        return unit

    def reads(self, words: Sequence[str]) -> bool:
        return bool(words)


def _scores(index: Index, request: str) -> list[float]:
    view = View(index, np.ones(len(index), np.bool_))
    return [float(score) for score in Ranker(Letters()).rank(view, request, view.allowed).fused]


@given(st.lists(descriptors(8), min_size=1, max_size=4), REQUESTS)
@settings(max_examples=60)
def test_a_refresh_equals_a_rebuild(history: list[list[Descriptor]], request: str) -> None:
    kept = Indexer(Letters(), VectorCache())
    index = [kept.build(found) for found in history][-1]
    fresh = Indexer(Letters(), VectorCache()).build(history[-1])
    assert index.descriptors == fresh.descriptors
    assert _scores(index, request) == pytest.approx(_scores(fresh, request), abs=1e-5)


def test_only_what_is_new_is_embedded() -> None:
    model = Letters()
    indexer = Indexer(model, VectorCache())
    indexer.build(OFFICE)
    indexer.build([*OFFICE, tool("new", "something else")])
    assert len(model.texts) == 2 * (len(OFFICE) + 1), "a text and a name each"


def test_a_restart_embeds_nothing_again(tmp_path: Path) -> None:
    first, second = Letters(), Letters()
    before = Indexer(first, VectorCache(tmp_path)).build(OFFICE)
    after = Indexer(second, VectorCache(tmp_path)).build(OFFICE)
    assert second.texts == []
    assert _scores(before, "send mail") == pytest.approx(_scores(after, "send mail"), abs=1e-3)


@pytest.mark.parametrize("damage", [b"", b"garbage", b"remit vectors 1 other 26\n"])
def test_a_damaged_file_of_vectors_is_begun_anew(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "vectors-letters.bin").write_bytes(damage)
    Indexer(Letters(), VectorCache(tmp_path)).build(OFFICE)
    again = Letters()
    Indexer(again, VectorCache(tmp_path)).build(OFFICE)
    assert again.texts == []


def test_a_record_that_was_cut_off_is_dropped_and_the_rest_is_kept(tmp_path: Path) -> None:
    Indexer(Letters(), VectorCache(tmp_path)).build(OFFICE)
    file = tmp_path / "vectors-letters.bin"
    file.write_bytes(file.read_bytes()[:-3])
    model = Letters()
    Indexer(model, VectorCache(tmp_path)).build(OFFICE)
    assert len(model.texts) == 1
    last = Letters()
    Indexer(last, VectorCache(tmp_path)).build(OFFICE)
    assert last.texts == []


def test_the_file_of_vectors_is_for_its_owner_alone(tmp_path: Path) -> None:
    Indexer(Letters(), VectorCache(tmp_path / "cache")).build(OFFICE)
    assert (tmp_path / "cache" / "vectors-letters.bin").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


def test_texts_that_are_long_gone_leave_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remit.features.discovery.embedding._SPARE", 5)
    indexer = Indexer(Letters(), VectorCache(tmp_path))
    for at in range(20):
        indexer.build([tool("a", f"text {at}")])
    record = 16 + 2 * Letters.dimensions
    assert (tmp_path / "vectors-letters.bin").stat().st_size < 12 * record
    model = Letters()
    Indexer(model, VectorCache(tmp_path)).build([tool("a", "text 19")])
    assert model.texts == []


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    index = Indexer(Letters(), VectorCache(tmp_path / "file" / "below")).build(OFFICE)
    assert len(index) == len(OFFICE)


def test_what_was_served_before_pulls_the_vector_towards_it() -> None:
    lessons = Lessons({"tool:read_mail": ["zzzz zzzz zzzz"]})
    plain = Indexer(Letters(), VectorCache()).build(OFFICE, NO_LESSONS)
    taught = Indexer(Letters(), VectorCache()).build(OFFICE, lessons)
    row = plain.rows["tool:read_mail"]
    assert taught.vectors is not None
    assert plain.vectors is not None
    assert taught.vectors[row][25] > plain.vectors[row][25]
    assert (taught.vectors[row - 1] == plain.vectors[row - 1]).all()


def test_neither_schema_nor_secrets_nor_content_are_embedded() -> None:
    secretive = tool(
        "a",
        "does it",
        required_secrets=("API_KEY_X",),
        full_schema={"properties": {"hidden_in_schema": {}}},
        parameters=(Parameter("shown", "string", "told"),),
        required_tools=("gh",),
        tags=("tagged",),
    )
    text = text_of(secretive)
    assert "API_KEY_X" not in text
    assert "hidden_in_schema" not in text
    assert all(word in text for word in ("a (a)", "does it", "shown", "told", "gh", "tagged"))


def test_an_index_of_nothing_answers_nothing() -> None:
    index = Indexer(Letters(), VectorCache()).build([])
    assert _scores(index, "anything") == []


@pytest.mark.skipif(VECTORS is None, reason="the extra 'search' is not installed")
def test_the_shipped_vectors_know_that_rain_is_weather() -> None:
    assert VECTORS is not None
    rain, weather, invoice = VECTORS.embed(["heavy rain", "weather forecast", "unpaid invoice"])
    assert rain @ weather > rain @ invoice


@pytest.mark.skipif(VECTORS is None, reason="the extra 'search' is not installed")
@pytest.mark.parametrize(
    ("words", "readable"),
    [
        (["translate", "document"], True),
        (["traducir", "documento"], True),
        (["asdf", "qwer", "zxcv"], False),
        (["xx"], False),
        (["погода", "завтра"], True),
        ([], False),
    ],
)
def test_language_is_told_from_letters_that_a_hand_fell_on(
    words: list[str], *, readable: bool
) -> None:
    assert VECTORS is not None
    assert VECTORS.reads(words) is readable


@pytest.mark.skipif(VECTORS is None, reason="the extra 'search' is not installed")
def test_half_a_sign_in_one_text_does_not_cost_everybody_the_index() -> None:
    index = Indexer(VECTORS, VectorCache()).build([tool("odd", "rain \ud83d"), *OFFICE])
    view = View(index, np.ones(len(index), np.bool_))
    scores = Ranker(VECTORS).rank(view, "weather \udc00 forecast", view.allowed).fused
    assert index.descriptors[int(scores.argmax())].name == "get_weather"


def test_a_start_with_an_empty_index_keeps_the_vectors_of_a_large_catalogue(tmp_path: Path) -> None:
    texts = [f"text {number}" for number in range(10_001)]
    VectorCache(tmp_path).vectors(Letters(), texts)
    restarted = VectorCache(tmp_path)
    restarted.vectors(Letters(), [])
    restarted.vectors(Letters(), texts)
    assert restarted.embedded == 0


def test_an_indexer_that_starts_empty_forgets_no_vectors(tmp_path: Path) -> None:
    many = [tool(f"t{number}", f"text {number}") for number in range(5_100)]
    Indexer(Letters(), VectorCache(tmp_path)).build(many)
    model = Letters()
    restarted = Indexer(model, VectorCache(tmp_path))
    restarted.build(())
    restarted.build(many)
    assert model.texts == []
