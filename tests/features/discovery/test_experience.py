"""What is learned from use, and what never is."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.features.discovery.learning.experience import (
    MAX_BY_CALLER,
    MAX_BY_ONE,
    MAX_BY_VOICE,
    Experience,
)
from remit.features.discovery.learning.lessons import HALF_LIFE, NO_LESSONS, VOICES, Lesson
from remit.features.discovery.learning.watch import Watch


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


TRUSTED = "tina"
THREE = ("ann", "bob", "eve")


@pytest.fixture
def experience(clock: Clock) -> Experience:
    """Callers are clients, and `ann/1` is an agent below `ann`."""
    return Experience(
        clock,
        root_of=lambda caller: caller.partition("/")[0],
        is_trusted=lambda caller: caller == TRUSTED,
    )


@pytest.fixture
def watch(experience: Experience, clock: Clock) -> Watch:
    return Watch(experience, clock)


def _asks_and_uses(watch: Watch, caller: str, request: str, *used: str) -> None:
    watch.asked(caller, "", request, [f"tool:{event}" for event in used])
    for event in used:
        watch.answered(caller, "", event)


def _learned(experience: Experience) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for one in experience.examples():
        found.setdefault(one.by, []).append((one.subject, one.text))
    return found


MAIL = ("tool:x:mail", "write to the boss")


def test_a_call_after_a_question_teaches_its_words_to_the_caller(
    watch: Watch, experience: Experience
) -> None:
    _asks_and_uses(watch, "ann", "write to the   boss", "x:mail")
    assert _learned(experience) == {"ann": [MAIL]}
    (own,) = experience.own("ann", "write to the boss")
    assert (own.id, own.likeness, own.penalty) == ("tool:x:mail", 1.0, 0.0)
    assert experience.own("bob", "write to the boss") == ()
    assert experience.lessons() == NO_LESSONS


def test_a_call_of_what_the_question_did_not_show_teaches_nothing(
    watch: Watch, experience: Experience
) -> None:
    watch.asked("ann", "", "steer the zeppelin north", ["tool:x:steer"])
    watch.answered("ann", "", "math:divide")
    assert _learned(experience) == {}


def test_a_call_without_a_question_teaches_nothing(watch: Watch, experience: Experience) -> None:
    watch.answered("ann", "", "x:mail")
    assert _learned(experience) == {}


def test_a_call_belongs_to_the_latest_question_that_showed_it(
    watch: Watch, experience: Experience
) -> None:
    watch.asked("ann", "", "write letters", ["tool:x:mail"])
    watch.asked("ann", "", "send mail", ["tool:x:mail"])
    watch.asked("ann", "", "rain tomorrow", ["tool:x:weather"])
    watch.answered("ann", "", "x:mail")
    assert _learned(experience) == {"ann": [("tool:x:mail", "send mail")]}


def test_a_call_of_somebody_else_or_in_another_session_teaches_nothing(
    watch: Watch, experience: Experience
) -> None:
    watch.asked("ann", "one", MAIL[1], [MAIL[0]])
    watch.answered("bob", "one", "x:mail")
    watch.answered("ann", "two", "x:mail")
    watch.answered("ann", None, "x:mail")
    assert _learned(experience) == {}


@pytest.mark.parametrize(("calls", "counts"), [(15, True), (16, False)])
def test_a_call_counts_among_the_first_after_its_question(
    watch: Watch, experience: Experience, calls: int, *, counts: bool
) -> None:
    watch.asked("ann", "", MAIL[1], [MAIL[0]])
    for at in range(calls):
        watch.answered("ann", "", f"x:n{at}")
    watch.answered("ann", "", "x:mail")
    assert bool(_learned(experience)) == counts


@pytest.mark.parametrize(("seconds", "counts"), [(599, True), (601, False)])
def test_a_call_counts_within_minutes_of_its_question(
    watch: Watch, experience: Experience, clock: Clock, seconds: float, *, counts: bool
) -> None:
    watch.asked("ann", "", MAIL[1], [MAIL[0]])
    clock.now += seconds
    watch.answered("ann", "", "x:mail")
    assert bool(_learned(experience)) == counts
    assert bool(watch.waiting) == counts


@pytest.mark.parametrize(
    "event",
    [
        *("awareness:inject", "skill:list", "config:plan", "review:list", "bill:query"),
        *("session:open", "agent:list", "agent:status", "permission:check", "discovery:tools"),
    ],
)
def test_housekeeping_teaches_nothing_however_it_is_said(
    watch: Watch, experience: Experience, event: str
) -> None:
    _asks_and_uses(watch, "ann", "write to the boss", event)
    experience.reported("ann", f"tool:{event}", worked=True, request="write to the boss")
    assert _learned(experience) == {}
    assert experience.own("ann", "write to the boss") == ()


def test_a_failure_or_a_refusal_is_evidence_against_for_its_caller_alone(
    watch: Watch, experience: Experience
) -> None:
    for code in ("internal", "denied", "timeout", "tool_failed"):
        watch.asked("ann", "", "write", [f"tool:x:{code}"])
        watch.answered("ann", "", f"x:{code}", code)
        assert [(one.id, one.penalty) for one in experience.own("ann", "other") if code in one.id]
    assert _learned(experience) == {}
    assert experience.own("bob", "write") == ()
    assert experience.lessons() == NO_LESSONS


@pytest.mark.parametrize("code", ["invalid_data", "limit_exceeded", "not_found"])
def test_a_mistake_of_the_caller_is_no_evidence(
    watch: Watch, experience: Experience, code: str
) -> None:
    watch.asked("ann", "", MAIL[1], [MAIL[0]])
    watch.answered("ann", "", "x:mail", code)
    assert experience.own("ann", MAIL[1]) == ()


def test_what_three_voices_taught_counts_for_everybody(experience: Experience) -> None:
    for caller, request in zip(
        THREE, ("write my boss", "write to a boss", "boss must be written: write"), strict=True
    ):
        assert experience.lessons().examples == {}
        experience.reported(caller, "tool:mail", worked=True, request=request)
    assert experience.lessons().examples == {"tool:mail": ["boss write"]}
    assert [one.counts for one in experience.examples()] == ["shared"] * VOICES
    assert {one.voices for one in experience.examples()} == {VOICES}


def test_kin_are_one_voice(experience: Experience) -> None:
    for caller in ("ann", "ann/1", "ann/2", "ann/3", "bob"):
        experience.reported(caller, "tool:mail", worked=True, request="write to the boss")
    assert experience.lessons() == NO_LESSONS
    assert {one.counts for one in experience.examples()} == {"own"}
    experience.reported("eve/1", "tool:mail", worked=True, request="write to the boss")
    assert experience.lessons().examples == {"tool:mail": ["boss write"]}


def test_the_same_words_for_another_descriptor_are_another_lesson(experience: Experience) -> None:
    for at, caller in enumerate(THREE):
        experience.reported(caller, f"tool:m{at}", worked=True, request="write to the boss")
    assert experience.lessons() == NO_LESSONS


def test_a_trusted_teacher_teaches_everybody_at_once_but_its_kin_do_not(
    experience: Experience,
) -> None:
    experience.reported(TRUSTED, "tool:mail", worked=True, request="write to the boss")
    experience.reported(f"{TRUSTED}/1", "tool:mail", worked=True, request="buy cheap pills")
    experience.reported("operator", "tool:fax", worked=True, request="fax it")
    assert experience.lessons().examples == {"tool:fax": ["fax"], "tool:mail": ["boss write"]}
    counts = {one.by: one.counts for one in experience.examples()}
    assert counts == {TRUSTED: "trusted", f"{TRUSTED}/1": "own", "operator": "trusted"}


def test_one_more_voice_changes_nothing_that_was_agreed(experience: Experience) -> None:
    for caller in THREE:
        experience.reported(caller, "tool:mail", worked=True, request="write to the boss")
        experience.reported(caller, "tool:mail", worked=True, request="letters to mother")
    before = experience.lessons()
    for at in range(1_000):
        request = f"write write boss letters mother zzz{at} pills"
        experience.reported("mallory", "tool:mail", worked=at % 3 > 0, request=request)
    assert experience.lessons() == before


def test_who_ends_takes_its_lessons_along_and_what_was_shared_goes_back(
    watch: Watch, experience: Experience
) -> None:
    for caller in THREE:
        _asks_and_uses(watch, caller, "write to the boss", "x:mail", "x:fax")
    assert experience.lessons().examples
    watch.asked("bob", "", "write to the boss", ["tool:x:mail"])
    watch.ended("bob")
    experience.ended("bob")
    assert experience.lessons() == NO_LESSONS
    assert set(_learned(experience)) == {"ann", "eve"}
    watch.answered("bob", "", "x:mail")  # a later one of that name did not ask
    assert experience.own("bob", "write to the boss") == ()


def test_an_accepted_lesson_counts_for_everybody_and_outlives_its_teacher(
    experience: Experience,
) -> None:
    experience.reported("ann", "tool:mail", worked=True, request="write to the boss")
    experience.decide("tool:mail", "write to the boss", "accepted", "operator")
    assert [one.counts for one in experience.examples()] == ["accepted"]
    experience.ended("ann")
    assert experience.lessons().examples == {"tool:mail": ["write to the boss"]}
    experience.decide("tool:mail", "write to the boss", "rejected", "operator")
    assert experience.lessons() == NO_LESSONS


def test_a_rejected_lesson_counts_for_its_teachers_alone_however_many_they_are(
    experience: Experience,
) -> None:
    experience.reported("ann", "tool:mail", worked=True, request="write to the boss")
    experience.decide("tool:mail", "write to the boss", "rejected", "operator")
    for caller in (*THREE, TRUSTED):
        experience.reported(caller, "tool:mail", worked=True, request="write to my boss")
    assert experience.lessons().examples == {}
    assert experience.own("ann", "write to the boss")


def test_what_voices_use_together_is_joined(watch: Watch, experience: Experience) -> None:
    for caller in THREE:
        assert experience.lessons().together == {}
        for _ in range(3):
            _asks_and_uses(watch, caller, "write to the boss", "b", "a", "b")
    assert experience.lessons().together == {("tool:a", "tool:b"): 3.0}


def test_more_voices_than_not_must_say_that_it_fails(experience: Experience) -> None:
    for _ in range(1_000):
        experience.reported("mallory", "tool:mail", worked=False)
    assert experience.lessons().penalties == {}
    for caller in ("bob", "eve"):
        for _ in range(4):
            experience.reported(caller, "tool:mail", worked=False)
    assert experience.lessons().penalties == {"tool:mail": 1.0}
    for caller in ("ann", "dan", "flo"):
        experience.reported(caller, "tool:mail", worked=True)
    assert experience.lessons().penalties == {}


def test_reports_count_for_what_remit_does_not_call(experience: Experience) -> None:
    experience.reported("ann", "skill:taxes", worked=True, request="file my taxes")
    assert _learned(experience) == {"ann": [("skill:taxes", "file my taxes")]}


def test_what_is_not_renewed_fades_and_goes(experience: Experience, clock: Clock) -> None:
    experience.reported(TRUSTED, "tool:mail", worked=True, request="write letters")
    clock.now += HALF_LIFE
    assert [one.weight for one in experience.examples()] == [0.5]
    clock.now += 2 * HALF_LIFE
    assert experience.lessons().examples == {}
    assert [one.likeness for one in experience.own(TRUSTED, "write letters")] == []


def test_a_clock_that_goes_back_makes_nothing_heavier(experience: Experience, clock: Clock) -> None:
    experience.reported("ann", "tool:mail", worked=True, request="write letters")
    clock.now -= 10 * HALF_LIFE
    assert [one.weight for one in experience.examples()] == [1.0]


def test_examples_are_bounded_and_the_most_alike_go_first(experience: Experience) -> None:
    experience.reported("ann", "tool:mail", worked=True, request="completely different words")
    for at in range(3 * MAX_BY_ONE):
        experience.reported("ann", "tool:mail", worked=True, request=f"write letter number {at}")
    texts = [text for _, text in _learned(experience)["ann"]]
    assert len(texts) == MAX_BY_ONE
    assert "completely different words" in texts
    assert f"write letter number {3 * MAX_BY_ONE - 1}" in texts


def test_who_teaches_much_displaces_its_own_lessons_alone(experience: Experience) -> None:
    experience.reported("bob", "tool:mail", worked=True, request="write to the boss")
    experience.reported("mallory", "tool:mail", worked=True, request="write to the boss")
    for at in range(MAX_BY_VOICE + MAX_BY_CALLER):
        caller = f"mallory/{at % 50}"
        experience.reported(caller, f"tool:n{at}", worked=True, request=f"buy n{at}")
    learned = _learned(experience)
    assert learned["bob"] == [("tool:mail", "write to the boss")]
    assert learned["mallory"] == [("tool:mail", "write to the boss")]
    assert len(experience.take_changes()[0]) <= MAX_BY_VOICE + 4


def test_switched_off_it_neither_learns_nor_counts(clock: Clock) -> None:
    experience = Experience(clock, enabled=False, is_trusted=lambda _caller: True)
    watch = Watch(experience, clock)
    _asks_and_uses(watch, "ann", "write to the boss", "x:mail")
    experience.reported("ann", "tool:mail", worked=True, request="write")
    experience.load([Lesson("example", "tool:mail", "write", "ann", at=clock.now)])
    assert experience.lessons() == NO_LESSONS
    assert experience.own("ann", "write") == ()


def test_a_request_without_words_teaches_nothing(watch: Watch, experience: Experience) -> None:
    _asks_and_uses(watch, "ann", "😀 !!", "x:mail")
    assert _learned(experience) == {}


def test_an_operator_can_remove_one_request_one_tool_or_everything(
    watch: Watch, experience: Experience
) -> None:
    for caller in THREE:
        _asks_and_uses(watch, caller, "write to the boss", "mail", "fax")
        _asks_and_uses(watch, caller, "letters to mother", "mail")
    assert experience.forget("tool:mail", "letters to mother") == VOICES
    assert experience.lessons().examples["tool:mail"] == ["boss write"]
    experience.forget("tool:mail")
    assert set(experience.lessons().examples) == {"tool:fax"}
    experience.decide("tool:fax", "write", "accepted", "operator")
    experience.forget()
    assert experience.lessons() == NO_LESSONS
    assert experience.decisions() == []


OLD = (
    Lesson("example", "tool:mail", "write letters", "ann"),
    Lesson("example", "tool:mail", "write poems", "gone"),
    Lesson("example", "tool:skill:list", "write poems", "ann"),
    Lesson("together", "tool:a", "tool:b"),
    Lesson("outcome", "tool:mail", "", "ann", 0.0, 1.0),
)


def test_lessons_of_the_old_form_count_for_their_teachers_who_still_live(
    experience: Experience,
) -> None:
    experience.load(OLD, lambda caller: caller != "gone", rewrite=True)
    assert _learned(experience) == {"ann": [("tool:mail", "write letters")]}
    put, removed = experience.take_changes()
    assert [(one.kind, one.root) for one in put] == [("example", "ann"), ("outcome", "ann")]
    assert len(removed) == len(OLD) - len(put)


def test_lessons_of_an_earlier_agent_of_the_same_name_are_not_taken_over(
    experience: Experience,
) -> None:
    experience.load([Lesson("example", "tool:mail", "write", "ann/1", root="bob")])
    assert _learned(experience) == {}


def test_changes_are_handed_out_once_and_taken_back_when_they_could_not_be_written(
    experience: Experience,
) -> None:
    experience.reported("ann", "tool:mail", worked=True, request="write letters")
    put, removed = experience.take_changes()
    assert (len(put), removed) == (2, [])
    assert experience.take_changes() == ([], [])
    experience.give_back(put, removed)
    experience.forget("tool:mail")
    again_put, again_removed = experience.take_changes()
    assert again_put == []
    assert {lesson.key for lesson in again_removed} == {lesson.key for lesson in put}


KEYS = st.sampled_from(["ann", "ann/1", "bob", "eve", TRUSTED])
IDS = st.sampled_from(["tool:x", "tool:y"])
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), KEYS, st.sampled_from(["one two", "three", "four five"])),
        st.tuples(st.just("use"), KEYS, st.sampled_from(["x", "y"])),
        st.tuples(st.just("fail"), KEYS, st.sampled_from(["x", "y"])),
        st.tuples(st.just("end"), KEYS, st.just("")),
        st.tuples(st.just("accept"), KEYS, IDS),
        st.tuples(st.just("forget"), KEYS, IDS),
        st.tuples(st.just("flush"), KEYS, st.just("")),
    ),
    max_size=40,
)


@given(ACTS)
def test_what_was_written_down_is_what_is_known(acts: Iterable[tuple[str, str, str]]) -> None:
    experience, disk = _fresh(), dict[tuple[str, str, str, str], Lesson]()
    watch = Watch(experience, lambda: 5.0)
    for act, caller, what in acts:
        if act == "ask":
            watch.asked(caller, "", what, ["tool:x", "tool:y"])
        elif act in ("use", "fail"):
            watch.answered(caller, "", what, "internal" if act == "fail" else "")
        elif act == "end":
            experience.ended(caller)
        elif act == "accept":
            experience.decide(what, "three", "accepted", "operator")
        elif act == "forget":
            experience.forget(what)
        else:
            _write(experience, disk)
    _write(experience, disk)
    again = _fresh()
    again.load(disk.values())
    assert again.lessons() == experience.lessons()
    assert again.examples() == experience.examples()
    assert again.take_changes() == ([], [])


def _fresh() -> Experience:
    return Experience(
        lambda: 5.0,
        root_of=lambda caller: caller.partition("/")[0],
        is_trusted=lambda caller: caller == TRUSTED,
    )


def _write(experience: Experience, disk: dict[tuple[str, str, str, str], Lesson]) -> None:
    put, removed = experience.take_changes()
    for lesson in removed:
        disk.pop(lesson.key, None)
    disk.update({lesson.key: lesson for lesson in put})
