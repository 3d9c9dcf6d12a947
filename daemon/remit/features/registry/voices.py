"""Voices: what each tree of agents has seen of a tool or skill, bounded in number and in weight.

A tree of agents is known by its root. What one voice says of an implementation weighs `VOICE` uses
at the most, the latest ones most: so nobody makes a favourite by repeating itself, and what has got
worse is noticed. A voice that was silent for long is added to the rest of its implementation, where
its counts remain and its name does not.
"""

from collections.abc import Iterable, Sequence

import msgspec

from remit.features.registry.store import Voice, VoiceKey

VOICE = 20.0
"""Uses that one voice weighs at the most; each further one makes the earlier ones count less."""
MAX_VOICES = 50_000
"""In all."""
VOICES = 64
"""Of one implementation under one facet."""
FACETS = 256
"""Tags and models of one implementation."""
FACETS_OF_VOICE = 64
"""Of these, how many one voice may bring in."""
_REST = ""
"""The voice of those that were silent for long, together."""
_REST_WEIGHT = VOICES * VOICE


class TrialScore(msgspec.Struct, frozen=True):
    """How often something worked, each voice weighing no more than `VOICE` uses."""

    successes: float = 0.0
    failures: float = 0.0

    @property
    def n(self) -> float:
        """How many uses it rests on."""
        return self.successes + self.failures

    @property
    def rate(self) -> float:
        """The expected success: (s + 1) / (n + 2)."""
        return (self.successes + 1.0) / (self.n + 2.0)


UNTRIED = TrialScore()


class Voices:
    """What all voices have seen; `put` and `dropped` are for whoever keeps them."""

    def __init__(self) -> None:
        self._facets: dict[str, dict[str, dict[str, Voice]]] = {}
        self._voices: dict[VoiceKey, Voice] = {}  # the one silent for longest first
        self._turn = 0
        self._put: dict[VoiceKey, None] = {}
        self._dropped: dict[VoiceKey, None] = {}

    def __len__(self) -> int:
        return len(self._voices)

    def load(self, voices: Iterable[tuple[VoiceKey, Voice]]) -> None:
        """Begin with what was kept, the one silent for longest first."""
        for key, voice in voices:
            self._place(key, voice)
            self._voices[key] = voice
            self._turn = max(self._turn, voice.turn)

    def _place(self, key: VoiceKey, voice: Voice) -> None:
        name, facet, root = key
        self._facets.setdefault(name, {}).setdefault(facet, {})[root] = voice

    def names(self) -> list[str]:
        """Everything that somebody has used."""
        return list(self._facets)

    def facets(self, name: str) -> list[str]:
        """The tags and models under which something was used, with '' for all its uses."""
        return list(self._facets.get(name, ()))

    def has_spoken(self, root: str, name: str, facet: str) -> bool:
        """Tell whether a voice has used something under a facet."""
        return root in self._facets.get(name, {}).get(facet, ())

    def score(self, name: str, facet: str) -> TrialScore:
        """What all voices say together."""
        voices = self._facets.get(name, {}).get(facet)
        if not voices:
            return UNTRIED
        found = voices.values()
        return TrialScore(sum(one.successes for one in found), sum(one.failures for one in found))

    def speak(self, key: VoiceKey, *, worked: bool, times: int = 1) -> None:
        """Count uses.

        Args:
            key: what was used, under which facet, and by the tree of which root.
            worked: whether it worked.
            times: how often, one after the other.
        """
        voice = self._voices.pop(key, None)
        if voice is None:
            voice = self._new_voice(key)
        _add(voice, times, worked=worked)
        self._note(key, voice)
        while len(self._voices) > MAX_VOICES:
            self._forget_oldest()

    def _note(self, key: VoiceKey, voice: Voice) -> None:
        """Put a voice behind all others, as it has spoken last."""
        self._turn += 1
        voice.turn = self._turn
        self._voices[key] = voice
        self._put[key] = None

    def _new_voice(self, key: VoiceKey) -> Voice:
        name, facet, root = key
        facets = self._facets.setdefault(name, {})
        if facet not in facets:
            self._make_room(name, root)
        elif len(facets[facet]) >= VOICES:
            others = [one for one in facets[facet] if one != _REST]
            oldest = min(others, key=lambda one: facets[facet][one].turn)
            self._silence((name, facet, oldest))
        voice = Voice()
        self._place(key, voice)
        self._dropped.pop(key, None)
        return voice

    def _make_room(self, name: str, root: str) -> None:
        """Before something gets a new facet: who brings in too many loses its oldest."""
        facets = self._facets[name]
        own = [facet for facet, voices in facets.items() if facet and root in voices]
        if len(own) >= FACETS_OF_VOICE:
            oldest = min(own, key=lambda facet: facets[facet][root].turn)
            self._drop((name, oldest, root))
        if len(facets) > FACETS:
            least = min((facet for facet in facets if facet), key=lambda f: len(facets[f]))
            for one in list(facets[least]):
                self._drop((name, least, one))

    def _forget_oldest(self) -> None:
        """Of too many in all, the counts of all uses remain; those of a tag only beside others."""
        name, facet, root = oldest = next(iter(self._voices))
        if root == _REST or (facet and _REST not in self._facets[name][facet]):
            self._drop(oldest)
        else:
            self._silence(oldest)

    def _silence(self, key: VoiceKey) -> None:
        """Add a voice to the common rest."""
        name, facet, root = key
        voice = self._facets[name][facet][root]
        self._drop(key)
        into = (name, facet, _REST)
        rest = self._voices.pop(into, None)
        if rest is None:
            rest = Voice()
            self._place(into, rest)
            self._dropped.pop(into, None)
        rest.successes += voice.successes
        rest.failures += voice.failures
        total = rest.successes + rest.failures
        if total > _REST_WEIGHT:
            rest.successes *= _REST_WEIGHT / total
            rest.failures *= _REST_WEIGHT / total
        self._note(into, rest)

    def _drop(self, key: VoiceKey) -> None:
        name, facet, root = key
        facets = self._facets[name]
        del facets[facet][root]
        if not facets[facet]:
            del facets[facet]
        if not facets:
            del self._facets[name]
        self._voices.pop(key, None)
        self._put.pop(key, None)
        self._dropped[key] = None

    def take_changes(self) -> tuple[list[tuple[VoiceKey, Voice]], list[VoiceKey]]:
        """What must be written and removed on disk since the last time; it is handed out once."""
        put = [(key, msgspec.structs.replace(self._voices[key])) for key in self._put]
        dropped = list(self._dropped)
        self._put.clear()
        self._dropped.clear()
        return put, dropped

    def give_back(self, put: Sequence[tuple[VoiceKey, Voice]], dropped: Sequence[VoiceKey]) -> None:
        """Take changes back that could not be written; newer ones win."""
        self._put |= {key: None for key, _ in put if key in self._voices}
        self._dropped |= {key: None for key in dropped if key not in self._voices}


def _add(voice: Voice, times: int, *, worked: bool) -> None:
    """Count uses; beyond `VOICE` of them, each makes all that came before it count less."""
    room = min(float(times), max(0.0, VOICE - voice.successes - voice.failures))
    kept = (VOICE / (VOICE + 1.0)) ** (times - room)
    new = VOICE * (1.0 - kept)
    if worked:
        voice.successes = (voice.successes + room) * kept + new
        voice.failures *= kept
    else:
        voice.failures = (voice.failures + room) * kept + new
        voice.successes *= kept
