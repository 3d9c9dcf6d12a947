"""What is learned from use, and what never is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.features.discovery.experience import (
    HALF_LIFE,
    MAX_BY_ONE,
    MAX_EXAMPLES,
    Experience,
    Lesson,
    Lessons,
)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def experience(clock: Clock) -> Experience:
    return Experience(clock)


def _asks_and_uses(experience: Experience, caller: str, request: str, *used: str) -> None:
    experience.asked(caller, "", request, used[:1])
    for descriptor in used:
        experience.used(caller, "", descriptor)


def test_a_call_after_a_question_teaches_its_words(experience: Experience) -> None:
    _asks_and_uses(experience, "ann", "write to the   boss", "tool:mail")
    assert experience.lessons().examples == {"tool:mail": ["write to the boss"]}


def test_a_call_without_a_question_teaches_nothing(experience: Experience) -> None:
    experience.used("ann", "", "tool:mail")
    assert experience.lessons() == Lessons()


def test_a_call_of_somebody_else_or_in_another_session_teaches_nothing(
    experience: Experience,
) -> None:
    experience.asked("ann", "one", "write to the boss", ["tool:mail"])
    experience.used("bob", "one", "tool:mail")
    experience.used("ann", "two", "tool:mail")
    assert experience.lessons() == Lessons()


def test_a_call_long_after_the_question_teaches_nothing(
    experience: Experience, clock: Clock
) -> None:
    experience.asked("ann", "", "write to the boss", ["tool:mail"])
    clock.now += 3_600
    experience.used("ann", "", "tool:mail")
    assert experience.lessons() == Lessons()
    assert not experience.waiting


def test_what_was_not_found_is_learned_with_less_weight(experience: Experience) -> None:
    _asks_and_uses(experience, "ann", "write to the boss", "tool:found", "tool:missed")
    weights = {lesson.subject: lesson.weight for lesson in experience.examples()}
    assert weights == {"tool:found": 1.0, "tool:missed": 0.5}


def test_what_is_used_for_one_request_is_used_together(experience: Experience) -> None:
    for _ in range(3):
        _asks_and_uses(experience, "ann", "write to the boss", "tool:b", "tool:a", "tool:b")
    assert experience.lessons().together == {("tool:a", "tool:b"): 3.0}


def test_a_failure_teaches_no_example_and_counts_against_it(experience: Experience) -> None:
    experience.asked("ann", "", "write to the boss", ["tool:mail"])
    for _ in range(3):
        experience.used("ann", "", "tool:mail", failed=True)
    assert experience.lessons() == Lessons(penalties={"tool:mail": 0.5})


def test_one_caller_alone_never_decides_about_a_tool(experience: Experience) -> None:
    for _ in range(1_000):
        experience.reported("mallory", "tool:mail", worked=False)
    for caller in ("ann", "bob", "eve"):
        for _ in range(3):
            experience.reported(caller, "tool:mail", worked=True)
    assert experience.lessons().penalties["tool:mail"] == pytest.approx(1 / 5)


def test_reports_count_for_what_remit_does_not_call(experience: Experience) -> None:
    experience.reported("ann", "skill:taxes", worked=True, request="file my taxes")
    assert experience.lessons().examples == {"skill:taxes": ["file my taxes"]}


def test_what_is_not_renewed_fades_and_goes(experience: Experience, clock: Clock) -> None:
    _asks_and_uses(experience, "ann", "write to the boss", "tool:mail")
    clock.now += HALF_LIFE
    assert [lesson.weight for lesson in experience.examples()] == [0.5]
    clock.now += 2 * HALF_LIFE
    assert experience.lessons().examples == {}


def test_a_clock_that_goes_back_makes_nothing_heavier(experience: Experience, clock: Clock) -> None:
    _asks_and_uses(experience, "ann", "write to the boss", "tool:mail")
    clock.now -= 10 * HALF_LIFE
    assert [lesson.weight for lesson in experience.examples()] == [1.0]


def test_examples_are_bounded_and_the_most_alike_go_first(experience: Experience) -> None:
    experience.reported("ann", "tool:mail", worked=True, request="completely different words")
    for at in range(3 * MAX_EXAMPLES):
        experience.reported(f"a{at}", "tool:mail", worked=True, request=f"write letter number {at}")
    texts = experience.lessons().examples["tool:mail"]
    assert len(texts) == MAX_EXAMPLES
    assert "completely different words" in texts
    assert f"write letter number {3 * MAX_EXAMPLES - 1}" in texts


def test_no_caller_fills_the_examples_of_a_tool_alone(experience: Experience) -> None:
    for at in range(100):
        experience.reported("mallory", "tool:mail", worked=True, request=f"buy product{at} now{at}")
    assert len(experience.lessons().examples["tool:mail"]) == MAX_BY_ONE


def test_switched_off_it_learns_nothing(clock: Clock) -> None:
    experience = Experience(clock, enabled=False)
    _asks_and_uses(experience, "ann", "write to the boss", "tool:mail")
    experience.reported("ann", "tool:mail", worked=True, request="write")
    assert experience.lessons() == Lessons()


def test_a_request_without_words_teaches_nothing(experience: Experience) -> None:
    _asks_and_uses(experience, "ann", "😀 !!", "tool:mail")
    assert experience.lessons().examples == {}


def test_an_operator_can_remove_one_request_one_tool_or_everything(
    experience: Experience,
) -> None:
    _asks_and_uses(experience, "ann", "write to the boss", "tool:mail", "tool:fax")
    _asks_and_uses(experience, "ann", "write to mother", "tool:mail")
    assert experience.forget("tool:mail", "write to mother") == 1
    assert experience.lessons().examples["tool:mail"] == ["write to the boss"]
    experience.forget("tool:mail")
    left = experience.lessons()
    assert "tool:mail" not in {*left.examples, *left.penalties}
    assert left.together == {}
    experience.forget()
    assert experience.lessons() == Lessons()


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


KEYS = st.sampled_from(["a", "b"])
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), KEYS, st.sampled_from(["one two", "three", "four five"])),
        st.tuples(st.just("use"), KEYS, st.sampled_from(["tool:x", "tool:y"])),
        st.tuples(st.just("fail"), KEYS, st.sampled_from(["tool:x", "tool:y"])),
        st.tuples(st.just("forget"), KEYS, st.sampled_from(["tool:x", "tool:y"])),
        st.tuples(st.just("flush"), KEYS, st.just("")),
    ),
    max_size=30,
)


@given(ACTS)
def test_what_was_written_down_is_what_is_known(acts: list[tuple[str, str, str]]) -> None:
    experience, disk = Experience(lambda: 5.0), dict[tuple[str, str, str, str], Lesson]()
    for act, caller, what in acts:
        if act == "ask":
            experience.asked(caller, "", what, ["tool:x"])
        elif act in ("use", "fail"):
            experience.used(caller, "", what, failed=act == "fail")
        elif act == "forget":
            experience.forget(what)
        else:
            _write(experience, disk)
    _write(experience, disk)
    again = Experience(lambda: 5.0)
    again.load(disk.values())
    assert again.lessons() == experience.lessons()
    assert again.take_changes() == ([], [])


def _write(experience: Experience, disk: dict[tuple[str, str, str, str], Lesson]) -> None:
    put, removed = experience.take_changes()
    for lesson in removed:
        disk.pop(lesson.key, None)
    disk.update({lesson.key: lesson for lesson in put})
