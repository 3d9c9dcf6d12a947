"""What is compared: remit's own ranking, and peers that read the same texts of the same tools.

Every maker takes an index of remit and the examples of its tools, and gives a function from a
request to ids, best first, equal ones by id. A maker raises ModuleNotFoundError when what it needs
is not installed.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from retrieval_sets import DEPTH

from remit.config.settings.load import load_settings
from remit.errors import SettingsError
from remit.features.discovery.embedders import make_embedder
from remit.features.discovery.embedding import Embedder, Floats, VectorCache, np, text_of
from remit.features.discovery.index import Index, Indexer
from remit.features.discovery.learning.lessons import Lessons, texts_of_one
from remit.features.discovery.rank import Ranker, best, ordered
from remit.features.discovery.relevance import WORDS_ALONE, calibration
from remit.features.discovery.view import View
from remit.model.descriptor import Descriptor
from remit.text.words import FILLER

Rank = Callable[[str], list[str]]
Examples = Mapping[str, Sequence[str]]
MODELS = {"default": "auto", "bm25f": "words", "vectors": "static", "minilm": "minilm"}
"""By ranker: what the setting `search` of a daemon would be."""
PEERS = ("bm25s", "rank_bm25", "keywords", "vectors")


def model_of(ranker: str) -> Embedder | None:
    """The model behind a ranker, made as the daemon makes it.

    Raises:
        ModuleNotFoundError: it is not installed, or not part of this remit.
    """
    try:
        return make_embedder(load_settings({"search": MODELS[ranker]}, {}, "/"))
    except SettingsError as error:
        raise ModuleNotFoundError(f"{error}; {error.hint}") from None
    except KeyError:
        raise ModuleNotFoundError(f"this remit has no {ranker} model") from None


def remit_ranker(
    ranker: str, tools: Sequence[Descriptor], examples: Examples
) -> tuple[Index, Rank]:
    """The index of remit over these tools, and the ranking that its ranker gives.

    The examples are learned as those of a trusted caller are.
    """
    model = model_of(ranker)
    learned = {tool: texts_of_one(requests) for tool, requests in examples.items()}
    index = Indexer(model, VectorCache()).build(tools, Lessons(examples=learned))
    if ranker == "vectors":
        return index, _by_vectors(index, model)
    view, scorer = _everything(index), Ranker(model)

    def rank(request: str) -> list[str]:
        ranking = scorer.rank(view, request, view.allowed)
        rows = best(ranking.fused, view, DEPTH, 0.0)
        likely, _fits = ranking.relevance(rows, calibration(model.name if model else WORDS_ALONE))
        return [index.descriptors[hit.row].id for hit in ordered(ranking, rows, likely)]

    return index, rank


def _everything(index: Index) -> View:
    return View(index, np.ones(len(index), np.bool_))


def peer(name: str, index: Index, examples: Examples) -> Rank:
    """A peer over the tools of an index."""
    if name == "vectors":
        return _vectors(index, examples)
    learned = [" ".join(examples.get(tool.id, ())) for tool in index.descriptors]
    if name == "keywords":
        return _ranked(index, _keywords(index.descriptors, learned))
    texts = [
        f"{text_of(tool)} {tool.server} {served}"
        for tool, served in zip(index.descriptors, learned, strict=True)
    ]
    return _ranked(index, _bm25s(texts) if name == "bm25s" else _rank_bm25(texts))


def _ranked(index: Index, score: Callable[[str], Any]) -> Rank:
    ids = [tool.id for tool in index.descriptors]

    def rank(request: str) -> list[str]:
        order = np.argsort(-np.asarray(score(request)), kind="stable")
        return [ids[row] for row in order[:DEPTH]]

    return rank


def _bm25s(texts: Sequence[str]) -> Callable[[str], Any]:
    """bm25s as its documentation begins: its own tokenizer, English stop words, all defaults."""
    import bm25s  # noqa: PLC0415 - a peer that may be missing

    def tokens(these: Sequence[str]) -> Any:
        return bm25s.tokenize(
            list(these), stopwords="en", return_ids=False, show_progress=False, allow_empty=True
        )

    engine = bm25s.BM25()
    engine.index(tokens(texts), show_progress=False)

    def score(request: str) -> Any:
        (asked,) = tokens([request])
        return engine.get_scores(asked) if asked else np.zeros(len(texts))

    return score


def _rank_bm25(texts: Sequence[str]) -> Callable[[str], Any]:
    """rank_bm25 as its documentation begins: texts split at blanks; lowered, which helps it."""
    from rank_bm25 import BM25Okapi  # noqa: PLC0415 - a peer that may be missing

    engine = BM25Okapi([text.lower().split() for text in texts])
    return lambda request: engine.get_scores(request.lower().split())


def _keywords(tools: Sequence[Descriptor], learned: Sequence[str]) -> Callable[[str], Floats]:
    """The score of keyword cards: 0.7 of the keywords that stand in the request, 0.3 density.

    Keywords are the words of name, description and tags without filler; a keyword stands in a
    request as any part of it, as in the original.
    """
    numbers: dict[str, int] = {}
    owned = []
    for tool, served in zip(tools, learned, strict=True):
        text = " ".join((tool.name, tool.description, *tool.tags, served))
        apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).lower()
        words = dict.fromkeys(word for word in re.findall(r"[^\W_]+", apart) if word not in FILLER)
        owned.append([numbers.setdefault(word, len(numbers)) for word in words])
    flat = np.array([number for words in owned for number in words], np.int64)
    owners = np.repeat(np.arange(len(tools)), [len(words) for words in owned])
    totals = np.maximum([len(words) for words in owned], 1)

    def score(request: str) -> Floats:
        lowered = request.lower()
        counts = np.array([lowered.count(word) for word in numbers])[flat]
        matched = np.bincount(owners, counts > 0, len(tools))
        density = np.minimum(np.bincount(owners, counts, len(tools)) / 100, 1)
        return (0.7 * matched / totals + 0.3 * density).astype(np.float32)

    return score


def _vectors(index: Index, examples: Examples) -> Rank:
    model = model_of("vectors")
    ours = index.vectors  # those of a blend are longer
    if ours is None or model is None or ours.shape[1] != model.dimensions:
        index = Indexer(model, VectorCache()).build(index.descriptors, Lessons(examples=examples))
    return _by_vectors(index, model)


def _by_vectors(index: Index, model: Embedder | None) -> Rank:
    """Cosines alone, of the vectors that the index has."""
    if index.vectors is None or model is None:
        raise ModuleNotFoundError("no model for vectors is installed")
    vectors = index.vectors
    return _ranked(index, lambda request: vectors @ model.embed([request])[0])
