"""What voices may weigh: many voices are heard, one is bounded, and nothing grows without end."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit.features.registry import voices as module
from remit.features.registry.store import Voice, VoiceKey
from remit.features.registry.voices import FACETS, FACETS_OF_VOICE, VOICE, VOICES, Voices

ROOTS = st.sampled_from(["ann", "bob", "eve"])
USES = st.lists(st.tuples(st.sampled_from(["a", "b"]), ROOTS, st.booleans()), max_size=120)


def spoken(uses: list[tuple[str, str, bool]]) -> Voices:
    voices = Voices()
    for name, root, worked in uses:
        voices.speak((name, "", root), worked=worked)
    return voices


def test_something_untried_is_as_likely_to_work_as_not() -> None:
    assert (Voices().score("a", "").rate, Voices().score("a", "").n) == (0.5, 0)


def test_the_rate_is_one_more_of_two_more() -> None:
    score = spoken([("a", "ann", True), ("a", "ann", True), ("a", "bob", False)]).score("a", "")
    assert (score.rate, score.n) == (3 / 5, 3)


@given(USES, st.lists(st.booleans(), min_size=1, max_size=400))
def test_one_voice_never_weighs_more_than_its_bound(
    others: list[tuple[str, str, bool]], said: list[bool]
) -> None:
    before = spoken(others).score("a", "")
    after = spoken([*others, *(("a", "mallory", one) for one in said)]).score("a", "")
    assert after.n - before.n <= VOICE + 1e-9
    assert after.successes - before.successes <= VOICE + 1e-9
    assert after.failures - before.failures <= VOICE + 1e-9
    assert 0 < after.rate < 1


@given(USES)
def test_few_uses_are_counted_as_they_are_in_any_order(uses: list[tuple[str, str, bool]]) -> None:
    few = uses[: int(VOICE)]
    for order in (few, few[::-1]):
        score = spoken(order).score("a", "")
        of_a = [worked for name, _, worked in few if name == "a"]
        assert (score.successes, score.n) == (sum(of_a), len(of_a))


def test_ten_thousand_false_successes_do_not_beat_what_five_others_saw() -> None:
    voices = spoken([("favourite", "mallory", True)] * 10_000)
    for root in ("ann", "bob", "cem", "dan", "eve"):
        for _ in range(20):
            voices.speak(("favourite", "", root), worked=False)
            voices.speak(("honest", "", root), worked=True)
    assert voices.score("favourite", "").rate < 0.2
    assert voices.score("honest", "").rate > 0.9


def test_what_has_got_worse_is_noticed_after_many_good_uses() -> None:
    voices = spoken([("a", "ann", True)] * 1_000 + [("a", "ann", False)] * 30)
    assert voices.score("a", "").rate < 0.3


def test_of_many_voices_the_silent_ones_are_counted_together() -> None:
    voices = spoken([("a", f"agent-{number}", True) for number in range(500)])
    assert voices.score("a", "").n == 500
    assert len(voices) <= VOICES + 1


def test_one_voice_cannot_push_the_tags_of_others_out() -> None:
    voices = Voices()
    for number in range(FACETS - FACETS_OF_VOICE):
        voices.speak(("a", f"#real-{number}", f"agent-{number % 7}"), worked=False)
    for number in range(5_000):
        voices.speak(("a", f"#junk-{number}", "mallory"), worked=True)
    junk = [facet for facet in voices.facets("a") if facet.startswith("#junk")]
    assert len(junk) == FACETS_OF_VOICE
    assert voices.score("a", "#real-0").n == 1


def test_tags_of_many_are_bounded() -> None:
    voices = Voices()
    for number in range(3 * FACETS):
        voices.speak(("a", f"#tag-{number}", f"agent-{number}"), worked=True)
    assert len(voices.facets("a")) <= FACETS + 1


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4), st.integers(0, 9)), max_size=300))
def test_voices_in_all_are_bounded_and_what_changed_is_what_is_kept(
    uses: list[tuple[int, int, int]],
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "MAX_VOICES", 40)
        voices = Voices()
        kept: dict[VoiceKey, Voice] = {}
        for at, (name, facet, root) in enumerate(uses):
            key = (f"id-{name}", f"#{facet}" if facet else "", f"agent-{root}")
            voices.speak(key, worked=root % 2 == 0)
            assert len(voices) <= 40
            if at % 7 == 0:
                put, dropped = voices.take_changes()
                if at % 2:
                    voices.give_back(put, dropped)
                else:
                    for gone in dropped:
                        kept.pop(gone, None)
                    kept |= dict(put)
        put, dropped = voices.take_changes()
        for gone in dropped:
            kept.pop(gone, None)
        kept |= dict(put)
        again = Voices()
        again.load(sorted(kept.items(), key=lambda item: item[1].turn))
        assert len(again) == len(voices)
        for one in voices.names():
            for tag in voices.facets(one):
                assert again.score(one, tag).rate == voices.score(one, tag).rate
