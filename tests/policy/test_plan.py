"""Plans: what an edit grants and takes away, widenings first."""

from typing import Any

import msgspec

from remit.model.grant import Grant
from remit.model.limits import Limits
from remit.policy.plan import compare, plan


def grant(*events: str, tools: tuple[str, ...] = (), **limits: Any) -> Grant:
    return Grant(
        profile="p",
        revision=1,
        bits=0,
        events=frozenset(events),
        claude_tools=frozenset(tools),
        limits=Limits(**limits),
    )


def test_a_change_tells_what_came_and_what_went() -> None:
    change = compare(
        grant("a:b", "a:c", tools=("Bash",), max_depth=2, max_children=1),
        grant("a:c", "a:e", "a:d", tools=("Read",), max_depth=3),
    )
    assert change.granted == ("a:d", "a:e")
    assert change.revoked == ("a:b",)
    assert change.tools_granted == ("Read",)
    assert change.tools_revoked == ("Bash",)
    assert change.limits_changed == {"max_children": [1, None], "max_depth": [2, 3]}


def test_profiles_that_get_more_come_first() -> None:
    before = {"a": grant("x:y", "x:z"), "b": grant(), "c": grant(max_depth=1), "d": grant("x:y")}
    after = {"a": grant("x:y"), "b": grant("x:y"), "c": grant(max_depth=2), "d": grant("x:y")}
    assert list(plan(before, after).changes) == ["b", "c", "a"]


def test_a_raised_or_lifted_limit_widens_and_a_new_or_lowered_one_does_not() -> None:
    assert compare(grant(max_depth=1), grant(max_depth=2)).widens
    assert compare(grant(max_depth=1), grant()).widens
    assert not compare(grant(), grant(max_depth=1)).widens
    assert not compare(grant(max_depth=2), grant(max_depth=1)).widens
    assert compare(grant(max_depth=0), grant(max_depth=1)).widens


def test_a_new_model_tool_widens() -> None:
    assert compare(grant(), grant(tools=("Bash",))).widens
    assert not compare(grant(tools=("Bash",)), grant()).widens


def test_unchanged_profiles_are_only_counted() -> None:
    same = {"a": grant("x:y", tools=("Bash",), max_depth=1), "b": grant()}
    result = plan(same, same)
    assert result.changes == {}
    assert result.unchanged == 2


def test_a_new_profile_is_granted_all_it_has_and_a_removed_one_loses_it() -> None:
    result = plan({"old": grant("x:y", max_depth=1)}, {"new": grant("x:z", max_depth=1)})
    assert list(result.changes) == ["new", "old"]
    assert result.changes["new"].granted == ("x:z",)
    assert result.changes["old"].revoked == ("x:y",)
    assert result.changes["new"].limits_changed == result.changes["old"].limits_changed == {}


def test_the_summary_comes_last_and_counts() -> None:
    before = {"a": grant("x:y", tools=("Bash",)), "b": grant()}
    after = {"a": grant("x:z", "x:w", tools=("Read", "Write")), "b": grant()}
    answer = plan(before, after).to_json()
    assert list(answer) == ["profiles", "agents", "summary"]
    assert answer["profiles"]["a"]["granted"] == ("x:w", "x:z")
    summary = answer["summary"]
    assert (summary["granted"], summary["revoked"]) == (2, 1)
    assert (summary["tools_granted"], summary["tools_revoked"]) == (2, 1)
    assert (summary["profiles"], summary["unchanged"]) == (1, 1)


def guarded(*events: str, **fields: Any) -> Grant:
    return msgspec.structs.replace(grant(*events), **fields)


def test_an_approval_that_falls_away_widens_and_one_that_comes_does_not() -> None:
    free, asks = guarded("x:y"), guarded("x:y", approval_required=frozenset({"x:y"}))
    dropped, added = compare(asks, free), compare(free, asks)
    assert (dropped.approval_removed, dropped.widens) == (("x:y",), True)
    assert (added.approval_added, added.widens) == (("x:y",), False)


def test_what_is_taken_away_is_no_longer_waited_for_and_that_widens_nothing() -> None:
    asks = guarded("x:y", approval_required=frozenset({"x:y"}))
    change = compare(asks, guarded())
    assert (change.revoked, change.approval_removed, change.widens) == (("x:y",), (), False)


def test_a_denial_is_told_once_as_what_it_took_or_as_what_it_keeps_away() -> None:
    free = {"p": guarded("x:y")}
    denies = {"p": guarded(denied_events=("x:y", "x:z"), denied_tools=frozenset({"Bash"}))}
    change = plan(free, denies).changes["p"]
    assert (change.revoked, change.denied_added) == (("x:y",), ("Bash", "x:z"))
    assert not change.widens
    change = plan(denies, free).changes["p"]
    assert (change.granted, change.denied_removed) == (("x:y",), ("Bash", "x:z"))
    only = plan({"p": guarded(denied_events=("x:y",))}, {"p": guarded()}).changes["p"]
    assert only.widens, "its agents can be given it now"


def test_the_denials_of_a_new_profile_are_no_change() -> None:
    assert plan({}, {"p": guarded(denied_events=("x:y",))}).changes == {}
    assert plan({"p": guarded(denied_events=("x:y",))}, {}).changes == {}
