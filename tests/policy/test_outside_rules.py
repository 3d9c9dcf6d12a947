"""Rules about upstream tools that are not there: told, and never in the way."""

import pytest
from tests.fakes import texts

from remit.kernel.authority.revision import compile_files
from remit.model.event import EventSpec
from remit.model.names import parse_event_name
from remit.model.place import DefinitionError
from remit.policy.universe import make_universe

CATALOGUE = "  notes:\n    description: x\n    event_patterns: ['state:get']\n"
UNIVERSE = make_universe([EventSpec(name=parse_event_name("state:get"))])


@pytest.mark.parametrize("pattern", ["mcp:time:now", "mcp:time:*", "mcp:*"])
@pytest.mark.parametrize("key", ["disallowed_tools", "approval_required"])
def test_a_rule_about_an_outside_tool_that_is_gone_is_a_warning(key: str, pattern: str) -> None:
    profile = f'capabilities: [notes]\n{key}: ["{pattern}"]\n'
    catalogue = compile_files(texts(CATALOGUE, careful=profile), UNIVERSE).catalogue
    [warning] = catalogue.warnings
    assert warning.code in ("dead_denial", "dead_approval")
    assert warning.place.file.endswith("careful.yaml")
    assert pattern in warning.message


@pytest.mark.parametrize("pattern", ["mcpx:time:now", "stat:get"])
def test_any_other_rule_that_matches_nothing_stays_an_error(pattern: str) -> None:
    profile = f'capabilities: [notes]\ndisallowed_tools: ["{pattern}"]\n'
    with pytest.raises(DefinitionError, match="denies nothing"):
        compile_files(texts(CATALOGUE, careful=profile), UNIVERSE)
