"""The ranker of discovery as a scorer of cards.

Importing this costs numpy: only who has chosen the scorer `semantic` does so.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

from remit.features.discovery.embedding import np
from remit.features.discovery.index import Indexer
from remit.features.discovery.rank import Ranker
from remit.features.discovery.view import View
from remit.model.descriptor import Descriptor

_VIEWS = 32
"""Sets of cards whose index is kept: callers with the same capabilities share one."""


class CardRanker:
    """Ranks texts against messages; may be called from several threads."""

    def __init__(self, make_indexer: Callable[[], Indexer]) -> None:
        self._make_indexer = make_indexer
        self._indexer: Indexer | None = None
        self._ranker: Ranker | None = None
        self._views: OrderedDict[tuple[str, ...], View] = OrderedDict()
        self._lock = Lock()

    def __call__(self, messages: Sequence[str], texts: Sequence[str]) -> Sequence[float]:
        """The relevance of each text, from 0 to 1."""
        if not texts:
            return []
        with self._lock:
            view, ranker = self._view(tuple(texts))
            scores = ranker.scores(view, "\n".join(messages), view.allowed)
        return [min(1.0, max(0.0, float(score))) for score in scores]

    def _view(self, texts: tuple[str, ...]) -> tuple[View, Ranker]:
        if self._indexer is None or self._ranker is None:
            self._indexer = self._make_indexer()
            self._ranker = Ranker(self._indexer.embedder)
        found = self._views.get(texts)
        if found is None:
            # The index is ordered by id, and no request can name an id with a NUL in it.
            described = [
                Descriptor(id=f"\0{at:06}", kind="skill", name="", description=text)
                for at, text in enumerate(texts)
            ]
            index = self._indexer.build(described)
            found = self._views[texts] = View(index, np.ones(len(index), np.bool_))
            if len(self._views) > _VIEWS:
                self._views.popitem(last=False)
        self._views.move_to_end(texts)
        return found, self._ranker
