"""Whatever is written as YAML is read back as exactly that."""

from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from remit.config.strict.edit import pair_lines
from remit.config.strict.yaml import parse_yaml, to_json
from remit.features.upstreams.file import parse_upstreams, with_servers, without_server

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
ARGUMENT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
PATH = Path("/upstreams.yaml")


@given(TEXT)
@example("true")
@example("~")
@example("1e5")
@example("0x10")
@example("a: b")
@example("a #b")
@example("- a")
@example(" a ")
@example("a\u2028\x85\r\n\t")
@example("https://x/: y")
@example("a" * 500 + "!")
def test_a_text_is_read_back(text: str) -> None:
    for value in (text, [text, text], {text or "k": text}):
        lines = "\n".join(pair_lines("key", value, 0)) + "\n"
        node, problems = parse_yaml(lines.encode(), "f")
        if node is None and text == "<<":
            continue  # a merge key is refused wherever it stands
        assert not problems, lines
        assert node is not None
        assert to_json(node) == {"key": value}


@given(
    st.lists(ARGUMENT, max_size=6),
    st.dictionaries(st.from_regex("[A-Z]{1,5}", fullmatch=True), ARGUMENT),
)
def test_a_server_is_added_and_taken_out_whatever_it_is_given(
    args: list[str], env: dict[str, str]
) -> None:
    before = "upstreams:\n  # one\n  a:\n    command: x\n# end\n"
    entry = {"command": "y", "args": args, "env": env}
    text = with_servers(before, {"new": entry}, PATH)
    found = parse_upstreams(text.encode(), PATH).upstreams[1]
    assert (list(found.args), dict(found.env)) == (args, env)
    assert without_server(text, "new", PATH) == before
