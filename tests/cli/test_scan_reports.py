"""scan: how findings are told, to people and as SARIF."""

import json
import os
from typing import Any

import jsonschema
from tests.cli.scan_lists import CONCEAL, TAGS, dump, found, tool
from tests.cli.shell import Shell


def test_the_text_is_grouped_by_file_and_ends_with_the_counts(shell: Shell) -> None:
    path = dump(shell, tool(description=CONCEAL))
    done = shell.run("scan", str(path))
    lines = done.out.splitlines()
    assert done.code == 1
    assert lines[0] == "calc.json"
    assert any(line.startswith("  calc.json:5:") and "[poison.conceal]" in line for line in lines)
    assert lines[-1].endswith("; looked at 1 tool")
    assert "\x1b" not in done.out


def test_a_name_cannot_speak_to_the_terminal(shell: Shell) -> None:
    path = dump(shell, tool("\x1b[31mred\u202e", CONCEAL))
    done = shell.run("scan", str(path))
    assert "\\u001b[31mred\\u202e" in done.out
    assert all(char.isprintable() or char == "\n" for char in done.out)


def test_the_order_does_not_depend_on_that_of_the_paths(shell: Shell) -> None:
    one, two = (dump(shell, tool(n, CONCEAL), name=n) for n in ("one", "two"))
    assert found(shell, one, two) == found(shell, two, one, one)


SARIF: dict[str, Any] = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {"version": {"const": "2.1.0"}, "$schema": {"type": "string"}},
    "additionalProperties": True,
    "$defs": {
        "text": {
            "type": "object",
            "required": ["text"],
            "properties": {"text": {"type": "string", "minLength": 1}},
            "additionalProperties": False,
        },
        "level": {"enum": ["none", "note", "warning", "error"]},
        "rule": {
            "type": "object",
            "required": ["id", "shortDescription", "help"],
            "properties": {
                "id": {"type": "string"},
                "name": {"type": "string", "pattern": "^[A-Z][A-Za-z0-9]*$"},
                "shortDescription": {"$ref": "#/$defs/text"},
                "fullDescription": {"$ref": "#/$defs/text"},
                "help": {"$ref": "#/$defs/text"},
                "defaultConfiguration": {"properties": {"level": {"$ref": "#/$defs/level"}}},
                "properties": {"properties": {"tags": {"type": "array", "uniqueItems": True}}},
            },
            "additionalProperties": False,
        },
        "location": {
            "type": "object",
            "required": ["physicalLocation"],
            "properties": {
                "physicalLocation": {
                    "required": ["artifactLocation", "region"],
                    "properties": {
                        "artifactLocation": {
                            "required": ["uri"],
                            "properties": {
                                "uri": {"type": "string", "pattern": "^[!-~]+$"},
                                "uriBaseId": {"const": "ROOT"},
                            },
                            "additionalProperties": False,
                        },
                        "region": {
                            "required": ["startLine", "startColumn"],
                            "properties": {
                                "startLine": {"type": "integer", "minimum": 1},
                                "startColumn": {"type": "integer", "minimum": 1},
                            },
                            "additionalProperties": False,
                        },
                    },
                    "additionalProperties": False,
                },
                "logicalLocations": {"type": "array", "minItems": 1},
            },
            "additionalProperties": False,
        },
        "result": {
            "type": "object",
            "required": ["ruleId", "ruleIndex", "level", "message", "locations"],
            "properties": {
                "ruleId": {"type": "string"},
                "ruleIndex": {"type": "integer", "minimum": 0},
                "level": {"$ref": "#/$defs/level"},
                "message": {"$ref": "#/$defs/text"},
                "locations": {"type": "array", "items": {"$ref": "#/$defs/location"}},
                "partialFingerprints": {"additionalProperties": {"type": "string"}},
            },
            "additionalProperties": False,
        },
    },
}
SARIF["properties"]["runs"] = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["tool", "results"],
        "properties": {
            "tool": {
                "required": ["driver"],
                "properties": {
                    "driver": {
                        "required": ["name", "version"],
                        "properties": {
                            "name": {"type": "string"},
                            "version": {"type": "string"},
                            "rules": {"type": "array", "items": {"$ref": "#/$defs/rule"}},
                        },
                        "additionalProperties": False,
                    }
                },
                "additionalProperties": False,
            },
            "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
            "originalUriBaseIds": {"type": "object"},
            "invocations": {"items": {"required": ["executionSuccessful"]}},
            "results": {"type": "array", "items": {"$ref": "#/$defs/result"}},
        },
        "additionalProperties": False,
    },
}
"""The parts of the standard's schema that are used, as strict as it is or stricter."""


def run_of(document: dict[str, Any]) -> dict[str, Any]:
    jsonschema.validate(document, SARIF)
    run: dict[str, Any] = document["runs"][0]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    return run


def test_sarif_says_the_same_as_json(shell: Shell) -> None:
    path = dump(shell, tool(description=CONCEAL), tool("b", f"Hi {TAGS}"), name="a dir/c\u00e4lc")
    items = found(shell, path)
    run = run_of(shell.run("scan", str(path), "--sarif").json)
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    assert [
        (result["ruleId"], result["level"], place["region"]["startLine"])
        for result, place in zip(run["results"], places, strict=True)
    ] == [(item["rule"], item["severity"], item["line"]) for item in items]
    assert {place["artifactLocation"]["uri"] for place in places} == {"a%20dir/c%C3%A4lc.json"}


def test_sarif_names_a_file_from_elsewhere_by_its_whole_address(shell: Shell) -> None:
    path = dump(shell, tool(description=CONCEAL), name="other side/calc")
    (shell.folder / "here").mkdir()
    os.chdir(shell.folder / "here")
    (result,) = run_of(shell.run("scan", str(path), "--sarif").json)["results"][:1]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": path.as_uri()}


def test_sarif_of_nothing_is_valid_too(shell: Shell) -> None:
    done = shell.run("scan", str(dump(shell, tool())), "--sarif=-")
    assert done.code == 0
    assert run_of(done.json)["results"] == []


def test_fingerprints_stay_when_lines_move(shell: Shell) -> None:
    def prints() -> list[str]:
        run = run_of(shell.run("scan", "calc.json", "--sarif").json)
        return [result["partialFingerprints"]["remitScan/v1"] for result in run["results"]]

    dump(shell, tool(description=CONCEAL), tool(description=CONCEAL))
    before = prints()
    dump(shell, tool("first"), tool(description=CONCEAL), tool(description=CONCEAL))
    assert prints() == before
    assert len(set(before)) == len(before)


def test_sarif_goes_to_a_file_and_never_over_one_that_was_meant_to_be_read(shell: Shell) -> None:
    path = dump(shell, tool(description=CONCEAL))
    done = shell.run("scan", str(path), "--sarif", "out.sarif")
    assert "[poison.conceal]" in done.out
    assert run_of(json.loads((shell.folder / "out.sarif").read_text()))["results"]
    before = path.read_bytes()
    assert shell.run("scan", "--sarif", str(path)).code == 2
    assert path.read_bytes() == before
    assert shell.run("scan", str(path), "--sarif", "no/folder/out.sarif").code == 2
    assert shell.run("scan", str(path), "--sarif=-", "--json").code == 2
