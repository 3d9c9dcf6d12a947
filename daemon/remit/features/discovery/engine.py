"""One question to the index: from a request and a grant to tiers of text inside a budget.

Importing this costs numpy and all that searches: only what searches does so.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from remit.config.settings.home import Home
from remit.config.settings.table import Settings
from remit.errors import DefinitionError
from remit.features.discovery.embedders import make_embedder
from remit.features.discovery.embedding import Flags, Floats, VectorCache, Whole, np
from remit.features.discovery.index import Index, Indexer
from remit.features.discovery.learning.lessons import Lessons, OwnLesson, OwnLessons
from remit.features.discovery.questions import Options
from remit.features.discovery.rank import (
    ALMOST,
    PENALTY,
    POOL,
    Hit,
    Ranker,
    Ranking,
    TextRanker,
    best,
    ordered,
    with_company,
)
from remit.features.discovery.relevance import WORDS_ALONE, calibration
from remit.features.discovery.texts import has_content, label_of
from remit.features.discovery.tiers import Tiered, assemble, render
from remit.features.discovery.view import DESCRIBE, View, view_of
from remit.features.skills.files import ContentReader
from remit.model.descriptor import Descriptor
from remit.model.grant import Grant
from remit.text.counting import TokenCounter, make_counter, text_hash
from remit.text.words import token_weight

_VIEWS = 128
_ANSWERS = 64
_COMPANY = 3
"""How many may come along with what was found."""
_OWN_LIFT = 0.6
"""What a descriptor gains that served the same request of the same caller before."""
_OWN_GROWTH = 0.75
"""How fast that grows with the likeness of the requests."""
_OWN_CHANCE = 0.6
"""How likely it is, at least, to serve it again."""

_COUNTED, _SAMPLE = 5_000, 1_000
"""Rows of an index that are all counted for a full dump; of more, how many are."""
_BLOCK, _SLOW_BLOCK = 512, 16
"""Texts that are embedded at once by a model that is quick, and by one that is not."""
_REMEMBERED = 2 * _COUNTED
"""Costs that are kept: those of an index and of the one before it."""
_COSTS: dict[tuple[str, bytes], int] = {}

Value = TypeVar("Value")


class Found(msgspec.Struct, frozen=True):
    """What one question found."""

    view: View
    hits: tuple[Hit, ...]
    tiers: Tiered
    full_dump: int
    """Tokens of everything in the view, had it been sent whole."""

    @property
    def descriptors(self) -> list[Descriptor]:
        """What was found, in order."""
        return [self.view.descriptor(hit.row) for hit in self.hits]


class Prepared(msgspec.Struct, frozen=True):
    """An index, and what each of its rows would cost in a full dump."""

    index: Index
    costs: Whole


class Engine:
    """An index with its caches. Only `prepare` may run outside of the loop."""

    def __init__(
        self, indexer: Indexer, counter: TokenCounter, content: Callable[[Descriptor], str]
    ) -> None:
        self.counter = counter
        self.content = content
        self._indexer = indexer
        self._ranker = Ranker(indexer.embedder)
        self._views: OrderedDict[Any, View] = OrderedDict()
        self._full_dumps = FullDumps(counter, content)
        self._text_ranker = TextRanker(indexer.sibling)
        self.index, self._costs = indexer.build(()), np.zeros(0, np.int64)

    @property
    def embedder_name(self) -> str:
        """The model behind the vectors; `words` when there is none."""
        return self._indexer.embedder.name if self._indexer.embedder else WORDS_ALONE

    @property
    def is_slow(self) -> bool:
        """Tell whether `embed` should be called in a worker thread before a question."""
        return self._indexer.embedder is not None and self._indexer.embedder.is_slow

    @property
    def problem(self) -> str:
        """Why there are no vectors, though there should be."""
        return self._indexer.problem

    def embed(self, request: str) -> None:
        """Get the vectors of a question beforehand; the question itself then waits for nothing."""
        self._ranker.embed(request)

    def prepare(
        self, descriptors: Iterable[Descriptor], lessons: Lessons, *, words_first: bool = False
    ) -> Prepared:
        """Make an index, in whatever thread; nothing is put in force.

        Args:
            descriptors: what is to be found.
            lessons: what use has taught.
            words_first: do without vectors when many are to be made; `embed_coming` makes them.
        """
        most_texts = (_SLOW_BLOCK if self.is_slow else 4 * _BLOCK) if words_first else None
        index = self._indexer.build(descriptors, lessons, most_texts=most_texts)
        return Prepared(index, self._full_dumps.costs(index))

    @property
    def is_incomplete(self) -> bool:
        """Tell whether the latest index does without vectors that `embed_coming` can make."""
        return bool(self._indexer.coming)

    def embed_coming(self) -> None:
        """Embed some of what the latest index does without, in a worker thread."""
        self._indexer.embed_coming(_SLOW_BLOCK if self.is_slow else _BLOCK)

    def put_in_force(self, prepared: Prepared) -> None:
        """Swap the index; views, and the answers kept in them, belonged to the old one."""
        self.index, self._costs = prepared.index, prepared.costs
        self._views.clear()

    def view(
        self,
        grant: Grant,
        *,
        everything: bool = False,
        names: Mapping[str, str] | None = None,
        way: str = DESCRIBE,
    ) -> View:
        """What a grant may see of the index in force; equal grants share one view."""
        names = names or {}
        # INVARIANT: the key holds all that `view_of` asks of a grant.
        held = True if everything else (grant.exposed, grant.capabilities)
        return _kept(
            self._views,
            (held, frozenset(names.items()), way),
            _VIEWS,
            lambda: view_of(self.index, grant, everything=everything, names=names, way=way),
        )

    def discover(self, view: View, request: str, options: Options, own: OwnLessons = ()) -> Found:
        """Find what fits a request, and fit it into the budgets; `own` moves a caller's ranks."""
        if own or (self.is_slow and self._ranker.lacks(request)):
            return self._discover(view, request, options, own)
        # INVARIANT: answers are kept in their view, so one caller's never reaches another's; and
        # equal grants share a view, so nothing is kept that the use of one caller had a part in.
        answers: OrderedDict[tuple[str, Options], Found] = view.answers
        return _kept(
            answers, (request, options), _ANSWERS, lambda: self._discover(view, request, options)
        )

    def _discover(self, view: View, request: str, options: Options, own: OwnLessons = ()) -> Found:
        among = _among(view, options)
        hits = self._hits(view, request, options, among, own)
        tiers = assemble(view, hits, options.budgets, self.counter, self.content)
        return Found(view, tuple(hits), tiers, self.full_dump(view))

    def _hits(
        self, view: View, request: str, options: Options, among: Flags, own: OwnLessons
    ) -> list[Hit]:
        """The best rows, each with how likely it serves; none where nothing is likely to."""
        ranking = self._ranker.rank(view, request, among)
        rows_by_id = view.index.rows
        mine = {rows_by_id[one.id]: one for one in own if one.id in rows_by_id}
        mine = {row: one for row, one in mine.items() if among[row]}
        fused = _taught(ranking, mine)
        rows = best(fused, view, max(POOL, options.budgets.top_k), 0.0)
        model = self.embedder_name if ranking.has_vectors else WORDS_ALONE
        likely, fits = ranking.relevance(rows, calibration(model))
        likely, fits = _with_own(rows, likely, fits, mine)
        if fits < options.min_relevance:
            return []
        ranking.fused = fused
        lift = options.graph_boost_factor if options.use_graph else 0.0
        hits = ordered(ranking, rows, likely, lift=lift)[: options.budgets.top_k]
        return with_company(hits, view, among, _COMPANY) if options.use_graph else hits

    def relevance(self, messages: Sequence[str], texts: Sequence[str]) -> Sequence[float]:
        """The relevance of other texts than descriptors, from 0 to 1; in whatever thread."""
        return self._text_ranker(messages, texts)

    def prompt(self, found: Found) -> str:
        """What was found as one text to put before a model, fenced as data."""
        return render(found.tiers, self.counter).text

    def cost(self, descriptor: Descriptor) -> int:
        """What one descriptor would cost, sent as it is."""
        return full_dump_tokens(descriptor, self.counter, self.content)

    def full_dump(self, view: View) -> int:
        """What the whole view would cost, sent as it is."""
        if view.full_dump is None:
            view.full_dump = int(self._costs[view.allowed].sum())
        return view.full_dump


def _taught(ranking: Ranking, own: Mapping[int, OwnLesson]) -> Floats:
    """The scores with what the caller's own use says of some rows; bounded either way."""
    found = ranking.fused.copy()
    for row, lesson in own.items():
        found[row] *= 1 - PENALTY * lesson.penalty
        found[row] += _OWN_LIFT * lesson.likeness**_OWN_GROWTH
    if ranking.named:
        np.minimum(found, ALMOST, out=found)
        found[list(ranking.named)] = 1.0
    return found


def _with_own(
    rows: Sequence[int], likely: Sequence[float], fits: float, own: Mapping[int, OwnLesson]
) -> tuple[list[float], float]:
    """How likely each row serves, and whether anything does, with the caller's own use.

    What served an equal request leaves at most 1 - `_OWN_CHANCE` of the doubt; what always failed
    the caller keeps 1 - `PENALTY` of its chance.
    """
    found = []
    for row, chance in zip(rows, likely, strict=True):
        lesson = own.get(row, _NO_LESSON)
        sure = _OWN_CHANCE * lesson.likeness
        kept = 1 - PENALTY * lesson.penalty
        fits = max(fits, sure * kept)
        found.append((chance + (1 - chance) * sure) * kept)
    return found, fits


_NO_LESSON = OwnLesson("", 0.0, 0.0)


def make_engine(settings: Settings) -> Engine:
    """Load the model and the counter that are configured.

    Raises:
        SettingsError: something is configured that is not installed.
    """
    cache = VectorCache(Home(settings.home).cache if settings.home.is_dir() else None)
    embedder, reader = make_embedder(settings), ContentReader()
    # The tokenizer that ships with the vectors counts too: it is loaded once.
    counter = make_counter(settings.token_counter, getattr(embedder, "tokenizer", None))
    return Engine(Indexer(embedder, cache), counter, lambda each: reader.read(each.source))


def make_text_ranker(settings: Settings) -> TextRanker:
    """A ranker of texts by the model that is configured, which is loaded at the first question."""
    return TextRanker(lambda: Indexer(make_embedder(settings), VectorCache()))


def _among(view: View, options: Options) -> Flags:
    """The rows of a view that pass the filters of one question."""
    if options.kind is None and options.category is None and not options.only_available:
        return view.allowed
    passed = np.zeros_like(view.allowed)
    category = options.category.casefold() if options.category else ""
    for row in view.rows:
        descriptor = view.index.descriptors[row]
        passed[row] = (
            options.kind in (None, descriptor.kind)
            and (not category or label_of(descriptor).casefold() == category)
            and (not options.only_available or view.index.is_available(row))
        )
    return passed


class FullDumps:
    """What each row of an index would cost in a list of everything.

    Of a large index only some rows are counted. They tell how many tokens a character has there,
    and the others are as long as they are: counting 50,000 takes longer than indexing them.
    """

    def __init__(self, counter: TokenCounter, content: Callable[[Descriptor], str]) -> None:
        self._counter = counter
        self._content = content
        self._latest = np.zeros(0, np.int64)
        self._is_counted = True

    def costs(self, index: Index) -> Whole:
        """A cost a row, in tokens; `index` follows the one that was asked about before."""
        is_counted = len(index) <= _COUNTED
        found = np.zeros(len(index), np.int64)
        kept = index.came_from >= 0
        if is_counted != self._is_counted or not len(self._latest):
            kept[:] = False
        found[kept] = self._latest[index.came_from[kept]]
        for row, one in enumerate(index.descriptors):
            # The text of a skill may be another one, though nothing that describes it is.
            if not kept[row] or one.source.content_file:
                found[row] = self._count(one) if is_counted else self._weigh(one)
        self._latest, self._is_counted = found, is_counted
        return found if is_counted else self._scaled(index, found)

    def _scaled(self, index: Index, weights: Whole) -> Whole:
        some = range(0, len(index), len(index) // _SAMPLE)
        counted = sum(self._count(index.descriptors[row]) for row in some)
        scale = counted / max(1, int(weights[some].sum()))
        found: Whole = np.rint(weights * scale).astype(np.int64)
        return found

    def _count(self, one: Descriptor) -> int:
        return full_dump_tokens(one, self._counter, self._content)

    def _weigh(self, one: Descriptor) -> int:
        return token_weight(dumped(one, self._content))


def full_dump_tokens(
    descriptor: Descriptor, counter: TokenCounter, content: Callable[[Descriptor], str]
) -> int:
    """What a descriptor would cost in a list of everything: its definition, or all of its text."""
    text = dumped(descriptor, content)
    key = (counter.name, text_hash(text))
    known = _COSTS.get(key)
    if known is None:
        known = counter.count(text)
        if len(_COSTS) >= _REMEMBERED:
            _COSTS.clear()
        _COSTS[key] = known
    return known


def dumped(descriptor: Descriptor, content: Callable[[Descriptor], str]) -> str:
    """A descriptor as it would stand in a list of everything."""
    if descriptor.kind == "skill" and has_content(descriptor):
        try:
            text = content(descriptor)
        except (OSError, UnicodeError, DefinitionError):
            text = ""  # it would be listed, without what cannot be read
        if text:
            return text
    listed: dict[str, Any] = {"name": descriptor.name, "description": descriptor.description}
    if descriptor.kind == "tool":
        listed["input_schema"] = _whole_schema(descriptor)
    try:
        return msgspec.json.encode(listed).decode()
    except (TypeError, ValueError):  # half a pair, or what JSON has not: it costs about the same
        return repr(listed)


def _whole_schema(descriptor: Descriptor) -> dict[str, Any]:
    if descriptor.full_schema is not None:
        return descriptor.full_schema
    return {
        "type": "object",
        "properties": {
            one.name: {"type": one.type, "description": one.description}
            for one in descriptor.parameters
        },
        "required": [one.name for one in descriptor.parameters if one.required],
    }


def _kept(cache: OrderedDict[Any, Value], key: Any, limit: int, make: Callable[[], Value]) -> Value:
    found = cache.get(key)
    if found is None:
        found = cache[key] = make()
        if len(cache) > limit:
            cache.popitem(last=False)
    else:
        cache.move_to_end(key)
    return found
