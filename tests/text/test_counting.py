"""What the token counters count, and what they say about themselves."""

from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.features.discovery.catalogues import VECTORS

from remit.errors import SettingsError
from remit.text.counting import (
    CharsCounter,
    LlamaCounter,
    TokenCounter,
    make_counter,
    static_folder,
)
from remit.text.words import estimate_tokens

needs_search = pytest.mark.skipif(static_folder() is None, reason="the extra search is missing")
needs_o200k = pytest.mark.skipif(find_spec("bpe_openai") is None, reason="the extra is missing")

PIECES = st.sampled_from(
    ["\n", "\n\n", " ", "  ", "▁", "the", "description", "search", "x", ":", "\t", "\r", "语", "😀"]
)
TEXTS = st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=20).map("".join))


def counters() -> list[TokenCounter]:
    found: list[TokenCounter] = [CharsCounter()]
    if VECTORS is not None:
        found.append(LlamaCounter(VECTORS.tokenizer))
    if find_spec("bpe_openai") is not None:
        found.append(make_counter("o200k"))
    return found


COUNTERS = counters()


@needs_search
@given(TEXTS)
def test_the_sum_over_lines_is_exactly_what_the_tokenizer_says(text: str) -> None:
    assert VECTORS is not None
    counter = LlamaCounter(VECTORS.tokenizer)
    whole = len(VECTORS.tokenizer.encode(text, add_special_tokens=False).ids)
    assert counter.count(text) == counter.count(text) == whole


@needs_search
@given(st.lists(st.one_of(PIECES, st.sampled_from(["w" * 1_500, "a " * 900])), max_size=12))
def test_long_lines_are_counted_in_parts_and_still_exactly(pieces: list[str]) -> None:
    assert VECTORS is not None
    text = " ".join(pieces)
    whole = len(VECTORS.tokenizer.encode(text, add_special_tokens=False).ids)
    assert LlamaCounter(VECTORS.tokenizer).count(text) == whole


@needs_search
def test_markers_of_the_tokenizer_count_as_the_text_that_they_are() -> None:
    assert make_counter("llama").count("<s></s><unk>" * 10) > 60


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
@given(text=TEXTS)
def test_no_text_has_no_tokens_and_every_other_has_some(counter: TokenCounter, text: str) -> None:
    assert (counter.count(text) > 0) == bool(text)


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
def test_a_lone_half_of_a_pair_and_a_text_of_a_megabyte_are_counted(
    counter: TokenCounter,
) -> None:
    assert counter.count("a \ud83d b") >= 1
    assert counter.count("word " * 220_000) >= 220_000


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
def test_each_states_its_error(counter: TokenCounter) -> None:
    assert len(counter.error) > 20


def test_characters_of_other_scripts_count_more_than_a_quarter() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("a") == 1
    assert estimate_tokens("a" * 70) == 20
    assert estimate_tokens("请帮我搜索今天的新闻") >= 10
    assert CharsCounter().count("abc") == estimate_tokens("abc")


@needs_o200k
def test_the_estimate_is_not_below_the_exact_count_for_languages() -> None:
    exact = make_counter("o200k")
    for text in (
        "Search the web for news. ",
        "请帮我搜索今天的新闻并总结",
        "Найдите новости ",
        "😀🎉",
    ):
        assert estimate_tokens(text * 5) >= exact.count(text * 5)


@needs_search
def test_without_a_choice_the_tokenizer_of_the_vectors_counts() -> None:
    assert make_counter().name == "llama"


def test_what_is_not_installed_says_how_to_install_it() -> None:
    if find_spec("bpe_openai") is not None:
        pytest.skip("it is installed")
    with pytest.raises(SettingsError) as caught:
        make_counter("o200k")
    assert "pip install 'remit[o200k]'" in caught.value.hint


def test_an_unknown_counter_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingsError) as caught:
        make_counter("gpt2")  # type: ignore[arg-type]
    assert "llama" in caught.value.hint
