"""Lessons of use, and for whom each one counts.

A voice is a client with all agents below it: however many it spawns, they are heard once. What one
voice teaches moves its own ranks. A word of a request counts for everybody as soon as `VOICES`
voices taught it for the same descriptor, and as often as that many of them did: so what one more of
them says changes nothing that was agreed already, however often it says so. A holder of a profile
with `trust: true` and the operator count like `VOICES` voices; what the operator accepted counts
whole.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from math import log, sqrt
from typing import Literal

import msgspec

from remit.text.words import words

LessonKind = Literal["example", "together", "outcome", "accepted", "rejected"]
DECIDED: frozenset[LessonKind] = frozenset({"accepted", "rejected"})

VOICES = 3
"""How many voices must teach the same before it counts for everybody."""
HALF_LIFE = 30 * 86_400.0
FADED = 0.2
MAX_LAYERS = 24
"""How often a word that was agreed on counts at the most."""
_SURE = 3.0
"""Outcomes of one voice after which its opinion counts whole."""
_SURE_PAIR = 2.0
"""How often one voice must have used two things together before it says so."""
_LEAST_ALIKE = 0.3
"""Requests that share less have nothing to do with each other."""
_SAME = 0.7
"""Requests that share this much are one, to somebody who rejected it."""

Taught = tuple[str, frozenset[str]]
"""A voice, and the words of a request for which it used something."""


class Lesson(msgspec.Struct, frozen=True):
    """One thing learned: `text` is a request, the other id of a pair, or nothing."""

    kind: LessonKind
    subject: str
    text: str
    by: str = ""
    weight: float = 1.0
    failures: float = 0.0
    at: float = 0.0
    root: str = ""
    """The client at the top of the tree that the teacher stands in."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What makes it the same lesson; every teacher has its own, but there is one decision."""
        kind = "decided" if self.kind in DECIDED else self.kind
        return (kind, self.subject, self.text, "" if self.kind in DECIDED else self.by)

    def faded(self, now: float) -> "Lesson":
        """The lesson as it counts now."""
        share = 0.5 ** (max(0.0, now - self.at) / HALF_LIFE)
        return msgspec.structs.replace(
            self, weight=self.weight * share, failures=self.failures * share, at=now
        )


class Lessons(msgspec.Struct, frozen=True):
    """What counts for everybody, in the form that an index is made from."""

    examples: Mapping[str, Sequence[str]] = {}
    """By descriptor id: requests that it served, or the words of them that were agreed on."""
    together: Mapping[tuple[str, str], float] = {}
    """How often two ids were used for one request, decayed; each pair once, in order."""
    penalties: Mapping[str, float] = {}
    """By descriptor id, from 0 (none) to 1: how often it failed those who chose it."""


NO_LESSONS = Lessons()


class OwnLesson(msgspec.Struct, frozen=True, order=True):
    """What a caller's own use says of one descriptor, for one request."""

    id: str
    likeness: float
    """Of the request to the nearest one that it served, from 0 to 1."""
    penalty: float
    """How often it failed this caller, from 0 to 1."""


OwnLessons = tuple[OwnLesson, ...]
Standing = Literal["own", "shared", "trusted", "accepted", "rejected"]


class Learned(msgspec.Struct, frozen=True):
    """A request that was learned, and for whom it counts."""

    subject: str
    text: str
    by: str
    weight: float
    counts: Standing
    """For its teacher; for everybody, because voices agreed, or one is trusted, or the operator
    accepted it; or for its teacher for good, because the operator rejected it."""
    voices: int
    """How many voices taught what counts of it."""


def standing_of(said: frozenset[str], about: "Agreed") -> tuple[Standing, int]:
    """Whether others agreed on most of an example, and how many voices did."""
    shared = [word for word in said if word in about.depths]
    voices = min((about.voices.get(word, 0) for word in shared or said), default=0)
    return ("shared" if 2 * len(shared) >= len(said) else "own"), voices


def agreed(said: Iterable[tuple[str, float]], trusted: Collection[str]) -> float:
    """The most that `VOICES` voices say at least, each by its largest; 0 when they are fewer."""
    said = list(said)
    if len(said) < VOICES and not any(voice in trusted for voice, _ in said):
        return 0.0
    left = VOICES
    for voice, amount in sorted(said, key=lambda one: -one[1]):
        left -= VOICES if voice in trusted else 1
        if left <= 0:
            return amount
    return 0.0


def words_by_voice(taught: Iterable[Taught]) -> dict[str, dict[str, int]]:
    """In how many requests each voice said each word."""
    counts: dict[str, dict[str, int]] = {}
    for voice, said in taught:
        for word in said:
            by = counts.setdefault(word, {})
            by[voice] = by.get(voice, 0) + 1
    return counts


def agreed_words(
    taught: Mapping[str, Mapping[str, int]], trusted: Collection[str]
) -> dict[str, int]:
    """The words that enough voices taught, and how often each of that many did."""
    found = {word: int(agreed(by.items(), trusted)) for word, by in taught.items()}
    return {word: count for word, count in found.items() if count}


def as_texts(depths: Mapping[str, int]) -> list[str]:
    """Texts in which each word stands as often as was agreed."""
    most = min(max(depths.values(), default=0), MAX_LAYERS)
    return [
        " ".join(sorted(word for word, depth in depths.items() if depth >= layer))
        for layer in range(1, most + 1)
    ]


def texts_of_one(requests: Iterable[str]) -> list[str]:
    """What one trusted voice teaches everybody with these requests."""
    voice = _trusted_voice("")
    taught = words_by_voice((voice, frozenset(words(one, stemmed=False))) for one in requests)
    return as_texts(agreed_words(taught, {voice}))


def own_penalty(successes: float, failures: float) -> float:
    """How often it failed one caller, and less as long as that is unsure."""
    count = successes + failures
    return min(1.0, count / (_SURE + 1)) * failures / count if count > 0 else 0.0


def agreed_penalty(opinions: Mapping[str, tuple[float, float]], trusted: Collection[str]) -> float:
    """How often it failed, when more voices say that it fails than that it works."""
    said = {voice: own_penalty(*counts) for voice, counts in opinions.items()}
    against = {v: opinions[v][1] > opinions[v][0] for v in said}
    votes = {voice: VOICES if voice in trusted else 1 for voice in said}
    no = sum(votes[voice] for voice in said if against[voice])
    if 2 * no <= sum(votes.values()):
        return 0.0
    return agreed(((voice, said[voice]) for voice in said if against[voice]), trusted)


class Agreed(msgspec.Struct, frozen=True):
    """What counts for everybody of all that was taught about one descriptor."""

    examples: Sequence[str]
    together: Mapping[str, float]
    penalty: float
    depths: Mapping[str, int]
    """How often each word counts."""
    voices: Mapping[str, int]
    """How many voices taught each word."""


def agree(taught: Iterable[tuple[Lesson, frozenset[str]]], trusted: Collection[str]) -> Agreed:
    """What counts for everybody of these lessons, each with its words.

    Args:
        taught: all about one descriptor, as they count now.
        trusted: the callers who teach everybody.
    """
    taught = list(taught)
    accepted = {lesson.text for lesson, _ in taught if lesson.kind == "accepted"}
    refused = [said for lesson, said in taught if lesson.kind == "rejected"]
    votes = {_trusted_voice(caller) for caller in trusted}
    examples: list[Taught] = []
    pairs: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    opinions: dict[str, tuple[float, float]] = {}
    for lesson, said in taught:
        voice = _trusted_voice(lesson.by) if lesson.by in trusted else lesson.root
        if lesson.kind == "outcome":
            worked, failed = opinions.get(voice, (0.0, 0.0))
            opinions[voice] = (worked + lesson.weight, failed + lesson.failures)
        elif lesson.kind == "together":
            pairs[lesson.text][voice] += lesson.weight
        elif lesson.kind == "example" and lesson.weight >= FADED and lesson.text not in accepted:
            examples.append((voice, said))
    examples = [one for one in examples if not _is_refused(one[1], refused)]
    counts = words_by_voice(examples)
    depths = agreed_words(counts, votes)
    together = {other: _agreed_pair(said, votes) for other, said in sorted(pairs.items())}
    return Agreed(
        [*as_texts(depths), *sorted(accepted)],
        {other: weight for other, weight in together.items() if weight},
        agreed_penalty(opinions, votes),
        depths,
        {word: len(by) for word, by in counts.items()},
    )


def _is_refused(said: frozenset[str], refused: Iterable[frozenset[str]]) -> bool:
    return any(likeness(said, no) >= _SAME for no in refused)


def _trusted_voice(caller: str) -> str:
    """A voice of its own, that its kin does not share; no caller has such a name."""
    return f"={caller}"


def _agreed_pair(said: Mapping[str, float], votes: Collection[str]) -> float:
    sure = [(voice, weight) for voice, weight in said.items() if weight >= _SURE_PAIR]
    return min(MAX_LAYERS, agreed(sure, votes))


def likeness(asked: frozenset[str], served: frozenset[str]) -> float:
    """How alike two requests are by their words, from 0 to 1; 0 when they are hardly alike."""
    if not asked or not served:
        return 0.0
    found = len(asked & served) / sqrt(len(asked) * len(served))
    return found if found >= _LEAST_ALIKE else 0.0


def likeness_by_subject(
    asked: frozenset[str], served: Mapping[str, Sequence[frozenset[str]]], subjects: int
) -> dict[str, float]:
    """How well a request fits those that each subject served, from 0 to 1.

    It is the share of the request, rare words counting more, that a subject served, and served
    often; or its likeness to one request alone, if that is more.

    Args:
        asked: the words of the request.
        served: the words of those requests that share one of them.
        subjects: how many there are in all.
    """
    counts = {
        subject: Counter(word for said in requests for word in said & asked)
        for subject, requests in served.items()
    }
    having = Counter(word for found in counts.values() for word in found)
    rarity = {
        word: log(1 + (subjects - having[word] + 0.5) / (having[word] + 0.5)) for word in asked
    }
    total = sum(rarity.values()) or 1.0
    found = {}
    for subject, by_word in counts.items():
        share = sum(rarity[word] * count / (count + 1) for word, count in by_word.items()) / total
        nearest = max(likeness(asked, said) for said in served[subject])
        found[subject] = max(share, nearest**2)
    return {subject: one for subject, one in found.items() if one >= _LEAST_ALIKE**2}


def most_alike(lessons: Sequence[Lesson], said: Sequence[frozenset[str]]) -> Lesson:
    """The older one of the two whose words agree most."""
    one, other = max(
        combinations(range(len(lessons)), 2),
        key=lambda pair: (_overlap(said[pair[0]], said[pair[1]]), -pair[0], -pair[1]),
    )
    return min(lessons[one], lessons[other], key=lambda lesson: (lesson.at, lesson.weight))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 1.0
