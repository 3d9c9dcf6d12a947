"""Whatever stands in the files, loading answers with problems and never with a crash."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.texts import CAPABILITIES, EVENTS, universe_of

from remit.config.definitions.files import Files, parse_definitions
from remit.errors import DefinitionError
from remit.policy.compile import compile_definitions

PROFILE = """name: p
extends: [p]
mixins: [{name: q, when: {team: core}}]
variables: {team: {type: string, default: core, allowed_values: [core, docs]}}
components:
  - {name: capabilities, inline: {state_write: true, messaging: false}}
  - name: tool_overrides
    inline: {additional_tools: ["state:{{team}}"], disallowed_tools: ["agent:*", Bash, "*"]}
    when: {team: docs}
capabilities: [state_read, {ref: network, config: {deep: [1, ~]}}]
limits: {max_depth: 1}
prompt: "Hello {{team}}"
"""
TOKENS = st.sampled_from(
    [
        *(
            b": ",
            b"\n",
            b"  ",
            b"- ",
            b"{",
            b"}",
            b"[",
            b"]",
            b",",
            b"&a ",
            b"*a",
            b"!!x ",
            b"<<",
            b"?",
        ),
        *(
            b"|",
            b">",
            b"'",
            b'"',
            b"#",
            b"---\n",
            b"...\n",
            b"%",
            b"\t",
            b"\0",
            b"\xff",
            b"~",
            b"true",
        ),
        *(
            b"\xef\xbb\xbf",
            b"\r",
            b"\xc2\x85",
            b"\xe2\x80\xa8",
            b'"\\0"',
            b"9" * 30,
            b"*",
            b"{{x}}",
        ),
        *(
            b"name",
            b"capabilities",
            b"requires",
            b"extends",
            b"source",
            b"when",
            b"state_read",
            b"p",
        ),
    ]
)
EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 12), TOKENS | st.binary(max_size=4)), max_size=5
)
UNIVERSE = universe_of(EVENTS)


def load(catalogue: bytes, profile: bytes) -> None:
    """Load two files, and hold every answer to its promises."""
    files = Files(catalogue="c.yaml", compositions=["p.yaml"])
    files.contents.update({"c.yaml": catalogue, "p.yaml": profile})
    definitions = parse_definitions(files)
    try:
        compile_definitions(definitions, UNIVERSE)
    except DefinitionError as error:
        for problem in files.illustrate(error.problems):
            assert problem.place.file in files.contents
            assert problem.place.line >= 1
            assert problem.place.column >= 1
            assert str(problem)
    else:
        assert definitions.problems == ()


def edited(text: str, edits: list[tuple[float, int, bytes]]) -> bytes:
    """The text with some of its bytes cut out and others put in."""
    raw = text.encode()
    for where, cut, put in edits:
        at = int(where * len(raw))
        raw = raw[:at] + put + raw[at + cut :]
    return raw


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_random_bytes_never_crash_the_loader(catalogue: bytes, profile: bytes) -> None:
    load(catalogue, profile)


@settings(max_examples=200)
@given(st.lists(TOKENS, max_size=25).map(b"".join), st.lists(TOKENS, max_size=25).map(b"".join))
def test_random_pieces_of_yaml_never_crash_the_loader(catalogue: bytes, profile: bytes) -> None:
    load(catalogue, profile)


@settings(max_examples=500)
@given(EDITS, EDITS)
def test_edited_files_never_crash_the_loader(
    one: list[tuple[float, int, bytes]], other: list[tuple[float, int, bytes]]
) -> None:
    load(edited(CAPABILITIES, one), edited(PROFILE, other))
