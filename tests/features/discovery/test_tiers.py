"""Map, summary and detail: what they show, and that none is ever over its budget."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.features.discovery.catalogues import index_of, skill, tool
from tests.text.test_counting import COUNTERS

from remit.errors import InvalidDataError
from remit.features.discovery.embedding import np
from remit.features.discovery.questions import Budgets
from remit.features.discovery.rank import Hit
from remit.features.discovery.tiers import Tiered, assemble, render
from remit.features.discovery.view import View
from remit.model.descriptor import DESCRIPTOR_KINDS, Descriptor, Parameter
from remit.text.counting import CharsCounter, TokenCounter

CHARS = CharsCounter()
ROOMY = Budgets(map=2_000, summary=5_000, detail=20_000, total=50_000)


class Jumpy:
    """A counter by whose count a whole is more than its parts."""

    name = "jumpy"
    error = "always wrong"

    def count(self, text: str) -> int:
        return len(text) // 3 + text.count("\n") ** 2


def view_of_all(descriptors: Sequence[Descriptor]) -> View:
    index = index_of(descriptors)
    return View(index, np.ones(len(index), np.bool_))


def answer(
    descriptors: Sequence[Descriptor],
    budgets: Budgets = Budgets(),  # noqa: B008 - frozen
    counter: TokenCounter = CHARS,
    contents: dict[str, str] | None = None,
) -> Tiered:
    """An answer in which every descriptor was found, in the order given."""
    view = view_of_all(descriptors)
    hits = [Hit(view.index.rows[descriptor.id], 0.9) for descriptor in descriptors]
    return assemble(view, hits, budgets, counter, lambda d: (contents or {}).get(d.id, ""))


# ---- never over budget ----

UGLY = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        [
            "```\nopen fence",
            "line\r\nbreaks\u2028of\x85all kinds\x0b",
            "语" * 400,
            "👨\u200d👩\u200d👧" * 80,
            "word " * 900,
            "x" * 5_000,
            "# heading\n\n" * 60,
            "\ud800 half",
            "</capability-data-00>",
        ]
    ),
)
SMALL = st.one_of(st.integers(0, 60), st.integers(0, 2_500))
BUDGETS = st.builds(
    Budgets,
    map=SMALL,
    summary=SMALL,
    detail=SMALL,
    total=SMALL,
    top_k=st.integers(0, 8),
    top_n=st.integers(0, 4),
)


@st.composite
def catalogues(draw: st.DrawFn) -> tuple[list[Descriptor], dict[str, str]]:
    found: list[Descriptor] = []
    contents: dict[str, str] = {}
    for at in range(draw(st.integers(0, 7))):
        kind = draw(st.sampled_from(DESCRIPTOR_KINDS))
        names = draw(st.lists(UGLY, max_size=4))
        name = draw(st.sampled_from([f"n{at}", "same", draw(UGLY)]))
        more: dict[str, Any] = {
            "category": draw(UGLY),
            "required_secrets": tuple(draw(st.lists(UGLY, max_size=2))),
            "required_tools": tuple(draw(st.lists(UGLY, max_size=2))),
            "available": draw(st.booleans()),
            "unavailable_because": draw(UGLY),
            "parameters": tuple(Parameter(one, "string", one) for one in names),
            "description": draw(UGLY),
        }
        found.append(Descriptor(id=f"{kind}:{at}", kind=kind, name=name, **more))
        contents[found[-1].id] = draw(UGLY)
    return found, contents


@pytest.mark.parametrize("counter", [*COUNTERS, Jumpy()], ids=lambda counter: counter.name)
@settings(max_examples=60)
@given(made=catalogues(), budgets=BUDGETS, data=st.data())
def test_no_text_is_ever_over_its_budget(
    counter: TokenCounter,
    made: tuple[list[Descriptor], dict[str, str]],
    budgets: Budgets,
    data: Any,
) -> None:
    descriptors, contents = made
    view = view_of_all(descriptors)
    rows = data.draw(st.permutations(range(len(descriptors))))
    hits = [
        Hit(row, 0.5, pulled_in_by=rows[0] if at and data.draw(st.booleans()) else None)
        for at, row in enumerate(rows)
    ]
    found = assemble(view, hits, budgets, counter, lambda d: contents[d.id])
    used = {
        "map": counter.count(found.map),
        "summary": counter.count(found.summary),
        "detail": counter.count(found.detail),
    }
    for tier, tokens in used.items():
        assert tokens == getattr(found.tokens, tier) <= getattr(budgets, tier)
    assert sum(used.values()) == found.tokens.total <= budgets.total
    assert counter.count(render(found, counter).text) <= budgets.total
    for text in (found.map, found.summary, found.detail):
        text.encode()  # nothing that cannot be sent
    named = {*found.summarised, *(one.id for one in found.skipped if one.tier == "summary")}
    assert len(named) >= min(budgets.top_k, len([hit for hit in hits if hit.pulled_in_by is None]))


def test_a_whole_that_counts_more_than_its_parts_is_shortened() -> None:
    found = answer([tool(f"t{at}") for at in range(8)], Budgets(summary=100, top_k=8), Jumpy())
    assert found.tokens.summary <= 100
    assert 4 <= len(found.summarised) < 8


@pytest.mark.parametrize("name", ["map", "summary", "detail", "total", "top_k", "top_n"])
@pytest.mark.parametrize("value", [-1, 10**9, "many"])
def test_a_budget_that_makes_no_sense_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidDataError) as caught:
        Budgets(**{name: value})
    assert caught.value.details == {"path": name}


# ---- map ----


def categories(count: int, each: int) -> list[Descriptor]:
    return [
        tool(f"tool_{at}_{one}", category=f"category-{at}")
        for at in range(count)
        for one in range(each)
    ]


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
@pytest.mark.parametrize(("count", "each"), [(0, 0), (1, 1), (1, 500), (8, 3), (60, 5), (900, 1)])
def test_the_map_fits_and_names_the_meta_tool(counter: TokenCounter, count: int, each: int) -> None:
    found = answer(categories(count, each), counter=counter)
    assert counter.count(found.map) <= 200
    assert "discover_capabilities" in found.map.split("\n")[-1]


def test_names_go_first_and_small_categories_second() -> None:
    few = answer([*categories(2, 3), tool("lonely", category="own")]).map
    assert "- category-0: tool_0_0, tool_0_1, tool_0_2 (3)" in few
    assert "- own: lonely (1)" in few
    many = answer(categories(1, 20)).map
    assert "(+14 more) (20)" in many
    nameless = answer(categories(20, 2)).map
    assert nameless.count("- category-") == 20
    assert "tool_" not in nameless
    assert "other" not in nameless
    crowded = answer(categories(60, 2)).map
    assert "tool_" not in crowded
    assert "category-" in crowded
    kept = crowded.count("- category-")
    assert f"- other (+{60 - kept}) ({2 * (60 - kept)})" in crowded


def test_without_a_category_the_server_groups_and_else_the_kind() -> None:
    found = answer([tool("a", server="github"), tool("b"), skill("c")])
    assert "- github: a (1)" in found.map
    assert "- tool: b (1)" in found.map
    assert "- skill: c (1)" in found.map


def test_the_map_counts_the_view_alone() -> None:
    index = index_of([tool("seen", category="open"), tool("unseen", category="closed")])
    view = View(index, np.array([True, False]))
    found = assemble(view, [Hit(0, 1.0), Hit(1, 0.9)], Budgets(), CHARS, lambda _: "")
    assert "unseen" not in found.map + found.summary + found.detail
    assert "closed" not in found.map
    assert "(1)" in found.map


# ---- summary ----


def test_a_line_tells_name_kind_purpose_parameters_and_needs() -> None:
    first = tool("search", "Search the web", parameters=(Parameter("query"), Parameter("limit")))
    second = skill(
        "github",
        "Work with\nissues.",
        required_tools=("tool:search",),
        required_secrets=("GH_TOKEN",),
        has_side_effects=True,
        available=False,
        unavailable_because="gh is not installed",
    )
    assert answer([first, second]).summary.split("\n")[1:] == [
        "1. search (tool). Search the web. Params: query, limit.",
        "2. github (skill). Work with issues. Requires: tool:search. Secrets: GH_TOKEN. "
        "Side effects. Unavailable: gh is not installed.",
    ]


def test_a_tool_that_nothing_provides_makes_a_skill_unavailable() -> None:
    assert (
        "Unavailable: nothing here is called gh."
        in answer([skill("github", required_tools=("gh",))]).summary
    )


def test_two_hits_of_one_name_are_told_apart_by_their_ids() -> None:
    twins = [
        Descriptor(id=f"tool:{one}.create_issue", kind="tool", name="create_issue")
        for one in ("github", "gitlab")
    ]
    summary = answer(twins).summary
    assert "1. tool:github.create_issue (tool)." in summary
    assert "2. tool:gitlab.create_issue (tool)." in summary


def test_only_the_best_are_shown_but_what_they_pull_in_stands_beside_them() -> None:
    view = view_of_all([tool("a"), tool("b"), tool("c"), tool("d")])
    hits = [Hit(0, 0.9), Hit(3, 0.1, pulled_in_by=0), Hit(1, 0.8), Hit(2, 0.7)]
    found = assemble(view, hits, Budgets(top_k=2), CHARS, lambda _: "")
    assert found.summary.split("\n")[1:] == [
        "1. a (tool).",
        "+ with a: d (tool).",
        "2. b (tool).",
    ]
    assert found.summarised == ("tool:a", "tool:d", "tool:b")


@pytest.mark.parametrize("text", ["word " * 2_000, "语" * 5_000, "x" * 9_000], ids=len)
def test_one_long_description_does_not_eat_the_summary(text: str) -> None:
    found = answer([tool("long", text), *(tool(f"t{at}", "Short one.") for at in range(4))])
    assert found.summarised == ("tool:long", "tool:t0", "tool:t1", "tool:t2", "tool:t3")
    assert found.summary.count("Short one.") == 4


def test_a_long_description_ends_at_a_sentence_or_a_word() -> None:
    sentences = "This sentence is a rather usual one of its kind. " * 20
    assert answer([tool("t", sentences)]).summary.endswith("of its kind.")
    words = "unpunctuated words that go on " * 40
    last = answer([tool("t", words)]).summary.removesuffix("….").removesuffix("…").split()[-1]
    assert last in words.split()


def test_what_does_not_fit_is_named() -> None:
    found = answer([tool(f"tool_with_a_name_{at}") for at in range(5)], Budgets(summary=30))
    named = {one.id for one in found.skipped if one.tier == "summary"}
    assert named
    assert not named & set(found.summarised)
    assert found.summarised[0] == "tool:tool_with_a_name_0"


def test_nothing_found_leaves_the_map_alone() -> None:
    view = view_of_all([tool("a")])
    found = assemble(view, [], Budgets(), CHARS, lambda _: "")
    assert found.map
    assert (found.summary, found.detail, found.skipped) == ("", "", ())


# ---- detail ----

SCHEMA = {
    "type": "object",
    "properties": {
        "limit": {"type": "integer", "description": "How many", "default": 5},
        "mode": {"type": "string", "enum": ["web", "news"], "default": "web"},
        "query": {"type": "string", "description": "What to\nlook for"},
        "where": {"$ref": "#/$defs/Place"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "since": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["query"],
    "$defs": {"Place": {"type": "object", "properties": {"city": {"type": "string"}}}},
}


def test_a_schema_is_written_as_a_list_with_the_required_first() -> None:
    found = answer(
        [tool("search", "Search", category="web", full_schema=SCHEMA, required_secrets=("KEY",))]
    )
    assert found.detail == "\n".join(
        [
            "# search",
            "Id: tool:search | Kind: tool | Category: web",
            "",
            "Search",
            "",
            "## Input",
            "  query (string, required): What to look for",
            "  limit (integer): How many (default: 5)",
            '  mode (string) [web|news] (default: "web")',
            "  where (object)",
            "    city (string)",
            "  tags (array of string)",
            "  since (string)",
            "",
            "Required secrets: KEY",
        ]
    )


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": None},
        {"properties": {"a": None, "b": 3, "c": {"type": ["string", 7]}}, "required": "a"},
        {"properties": {"me": {"$ref": "#/$defs/Me"}}, "$defs": {"Me": {"$ref": "#/$defs/Me"}}},
        {"properties": {"e": {"enum": [None, {"x": 1}, "y" * 500], "default": object}}},
        {"properties": {f"p{at}": {"type": "string"} for at in range(5_000)}},
    ],
    ids=["none", "wrong-types", "endless", "odd-values", "huge"],
)
def test_a_schema_that_is_wrong_is_shown_as_far_as_it_goes(schema: dict[str, Any]) -> None:
    assert "# search" in answer([tool("search", full_schema=schema)]).detail


def test_the_text_of_a_skill_is_shown_without_its_head() -> None:
    text = "---\nname: report\n---\n# How\n\nWrite it down.\n"
    found = answer([skill("report", "Reports")], contents={"skill:report": text})
    assert found.detail.endswith("Reports\n\n# How\n\nWrite it down.")
    assert "name: report" not in found.detail


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
def test_a_top_hit_of_fifty_thousand_tokens_leaves_room_for_the_next(counter: TokenCounter) -> None:
    huge = "\n\n".join(f"Paragraph {at} says nothing much at all." for at in range(6_000))
    found = answer(
        [skill("huge"), skill("small")],
        counter=counter,
        contents={"skill:huge": huge, "skill:small": "All of the small one."},
    )
    assert found.detailed == ("skill:huge", "skill:small")
    assert "All of the small one." in found.detail
    assert "much at all.\n[cut here; all of it: discovery:describe skill:huge]" in found.detail
    assert found.tokens.total > 1_500


def test_two_huge_hits_share_the_room() -> None:
    texts = {f"skill:{one}": f"{one} word. " * 9_000 for one in "ab"}
    detail = answer([skill("a"), skill("b")], contents=texts).detail
    first, second = detail.split("# b\n")
    assert 0.8 < len(first) / len(second) < 1.25


def test_a_cut_leaves_no_code_block_open_and_no_heading_alone() -> None:
    code = "Text.\n\n```python\n" + "print(1)\n" * 4_000 + "```\n"
    detail = answer([skill("a")], contents={"skill:a": code}).detail
    assert detail.count("```") == 2
    heads = "\n\n".join(f"## Heading {at}\n\nText {at}." for at in range(3_000))
    for room in range(200, 240):
        found = answer([skill("b")], Budgets(detail=room), contents={"skill:b": heads})
        assert not found.detail.split("\n")[-2].startswith("#")


def test_what_cannot_be_read_is_named_without_its_path_and_the_next_takes_its_place() -> None:
    def content(descriptor: Descriptor) -> str:
        if descriptor.name == "gone":
            raise FileNotFoundError(2, "No such file or directory", "/srv/secret")
        if descriptor.name == "binary":
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid")
        return "Text."

    names = ["gone", "binary", "one", "two", "zero"]
    view = view_of_all([skill(name) for name in names])
    hits = [Hit(view.index.rows[f"skill:{name}"], 0.9) for name in names]
    found = assemble(view, hits, Budgets(), CHARS, content)
    assert found.detailed == ("skill:one", "skill:two")
    assert [(one.id, one.tier) for one in found.skipped] == [
        ("skill:gone", "detail"),
        ("skill:binary", "detail"),
    ]
    assert "No such file" in found.skipped[0].reason
    assert "secret" not in found.skipped[0].reason


def test_a_changed_skill_is_shown_as_it_is_now() -> None:
    view = view_of_all([skill("s")])
    for text in ("First.", "Second."):
        found = assemble(view, [Hit(0, 1.0)], Budgets(), CHARS, lambda _, text=text: text)  # type: ignore[misc]
        assert found.detail.endswith(text)


def test_what_cannot_be_seen_is_not_shown() -> None:
    hidden = "a\u202eb\x1b[31mc\u200bd\U000e0041e\x00f"
    found = answer([tool("t", hidden)], ROOMY)
    assert "ab[31mcdef" in found.detail
    assert "ab[31mcdef" in found.summary


def test_the_total_takes_from_the_detail_first() -> None:
    texts = {"skill:a": "A usual sentence. " * 2_000}
    found = answer([skill("a", "Short.")], Budgets(total=300), contents=texts)
    assert found.summarised == found.detailed == ("skill:a",)
    assert 200 < found.tokens.total <= 300
    tiny = answer([skill("a", "Short.")], Budgets(total=60), contents=texts)
    assert tiny.summarised == ("skill:a",)
    assert [one.tier for one in tiny.skipped] == ["detail"]
