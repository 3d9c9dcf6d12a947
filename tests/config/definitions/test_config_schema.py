"""The configuration of a capability in the files: its schema, and where values do not fit."""

import pytest
from tests.fakes import texts
from tests.policy.catalogues import universe_of_names

from remit.config.definitions.files import Files, parse_definitions
from remit.errors import DefinitionError, Problem
from remit.policy.compile import compile_definitions

CATALOGUE = """  fetch:
    description: f
    config_schema:
      type: object
      properties:
        hosts: {type: array, items: {type: string, pattern: "^[a-z.]+$"}}
      additionalProperties: false
  plain: {description: p}
"""


def problems(files: Files) -> list[Problem]:
    try:
        compile_definitions(parse_definitions(files), universe_of_names(["a:b"]))
    except DefinitionError as error:
        return list(error.problems)
    return []


@pytest.mark.parametrize(
    ("config", "place", "told"),
    [
        pytest.param("{hosts: [a.b, 3]}", "p.yaml:2:51", "$.hosts[1]", id="an-item"),
        pytest.param("{hosts: [A]}", "p.yaml:2:46", "$.hosts[0]", id="a-pattern"),
        pytest.param("{hots: [a]}", "p.yaml:2:37", "($)", id="an-unknown-key"),
    ],
)
def test_a_configuration_that_does_not_fit_is_told_where_it_stands(
    config: str, place: str, told: str
) -> None:
    (found,) = problems(texts(CATALOGUE, p=f"capabilities: [{{ref: fetch, config: {config}}}]\n"))
    assert (found.code, str(found.place)) == ("invalid_config", f"compositions/{place}")
    assert told in found.message


@pytest.mark.parametrize(("name", "codes"), [("fetch", []), ("plain", ["invalid_config"])])
def test_what_fits_is_taken_and_what_no_schema_speaks_of_is_not(
    name: str, codes: list[str]
) -> None:
    text = f"capabilities: [{{ref: {name}, config: {{hosts: [a.b]}}}}]\n"
    assert [one.code for one in problems(texts(CATALOGUE, p=text))] == codes


@pytest.mark.parametrize(
    ("schema", "column"),
    [
        pytest.param("{type: objct}", 39, id="no-such-type"),
        pytest.param("{properties: {a: {minimum: x}}}", 56, id="deep-inside"),
        pytest.param("{$ref: 'https://example.org/schema'}", 38, id="what-lies-outside"),
        pytest.param("{pattern: '(?=a)b'}", 39, id="a-pattern-that-looks-around"),
    ],
)
def test_a_schema_that_is_none_is_told_where_it_stands(schema: str, column: int) -> None:
    (found,) = problems(texts(f"  x: {{description: d, config_schema: {schema}}}\n"))
    assert (found.code, found.place.line, found.place.column) == ("invalid_schema", 3, column)
