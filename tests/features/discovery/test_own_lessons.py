"""What a caller's own use does to its ranks, and how far it goes at the most."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.features.discovery.catalogues import OFFICE, grant

from remit.features.discovery.embedding import VectorCache
from remit.features.discovery.engine import Engine
from remit.features.discovery.index import Indexer
from remit.features.discovery.learning.experience import Experience
from remit.features.discovery.learning.lessons import NO_LESSONS, OwnLesson, OwnLessons
from remit.features.discovery.questions import Options
from remit.text.counting import make_counter

ENGINE = Engine(Indexer(None, VectorCache()), make_counter("chars"), lambda _one: "")
ENGINE.put_in_force(ENGINE.prepare(OFFICE, NO_LESSONS))
IDS = [one.id for one in OFFICE]
REQUESTS = ("send a mail to a customer", "weather of a city", "zap the frobnicator", "send_mail")


def found(request: str, own: OwnLessons = ()) -> dict[str, float]:
    view = ENGINE.view(grant(*(one.event for one in OFFICE if one.event)))
    told = ENGINE.discover(view, request, Options(min_relevance=0.0, use_graph=False), own)
    return {view.descriptor(hit.row).id: hit.relevance for hit in told.hits}


OWN = st.lists(
    st.builds(OwnLesson, st.sampled_from(IDS), st.floats(0, 1), st.floats(0, 1)),
    max_size=4,
    unique_by=lambda one: one.id,
).map(lambda found: tuple(sorted(found)))


@given(own=OWN, request_=st.sampled_from(REQUESTS))
def test_nothing_that_was_learned_makes_a_hit_certain_or_impossible(
    own: OwnLessons, request_: str
) -> None:
    before, after = found(request_), found(request_, own)
    for id_ in before.keys() & after.keys():
        assert after[id_] <= before[id_] + 0.6 * (1 - before[id_]) + 1e-6
        if not own:
            assert after == before


@given(own=OWN)
def test_what_a_request_names_in_full_comes_first_whatever_was_learned(own: OwnLessons) -> None:
    assert next(iter(found("send_mail", own))) == "tool:send_mail"


def test_what_failed_comes_later_but_is_still_found() -> None:
    failing = (OwnLesson("tool:send_mail", 0.0, 1.0),)
    before, after = found("send mail message"), found("send mail message", failing)
    assert next(iter(before)) == "tool:send_mail"
    assert after["tool:send_mail"] == pytest.approx(0.7 * before["tool:send_mail"], rel=0.35)
    assert after["tool:send_mail"] > 0


def test_a_descriptor_that_is_not_in_the_view_is_not_found_by_having_been_used() -> None:
    view = ENGINE.view(grant("x:send_mail"))
    own = (OwnLesson("tool:get_weather", 1.0, 0.0), OwnLesson("tool:gone", 1.0, 0.0))
    told = ENGINE.discover(view, "weather of a city", Options(min_relevance=0.0), own)
    assert "tool:get_weather" not in [view.descriptor(hit.row).id for hit in told.hits]


@pytest.mark.parametrize(
    ("served", "asked", "is_near"),
    [
        ("book a table for two", "book a table for two", True),
        ("book a table for two", "a table for the four of us, book it", True),
        ("book a table for two", "weather of a city", False),
    ],
)
def test_own_lessons_count_for_requests_that_are_alike(
    served: str, asked: str, *, is_near: bool
) -> None:
    experience = Experience(lambda: 5.0)
    experience.reported("ann", "tool:table", worked=True, request=served)
    for at in range(5):
        experience.reported("ann", f"tool:t{at}", worked=True, request=f"other matters {'x' * at}")
    assert [one.id for one in experience.own("ann", asked)] == ["tool:table"] * is_near


def test_use_that_repeats_itself_says_more() -> None:
    experience = Experience(lambda: 5.0)
    likeness = []
    for at in range(4):
        request = f"reserve seats {chr(97 + at) * 6} {chr(103 + at) * 7} {chr(109 + at) * 5}"
        experience.reported("ann", "tool:table", worked=True, request=request)
        experience.reported("ann", "tool:other", worked=True, request="something else entirely")
        (own,) = experience.own("ann", "seats we reserve")
        likeness.append(own.likeness)
    assert likeness == sorted(likeness)
    assert likeness[-1] > likeness[0]
