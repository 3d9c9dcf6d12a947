"""Features: each can be taken out of the list, and the daemon serves the rest."""

from pathlib import Path
from typing import Any

import pytest
from tests.fakes import default_settings

from remit.app.daemon import run_daemon
from remit.app.features import FEATURES, event_modules, served
from remit.kernel.dispatch.registry import REGISTRY, load_handlers
from remit.kernel.feature import Feature
from remit.model.principal import OPERATOR

QUIET = {"watch": False, "learn": False}


def events_of(features: tuple[Feature, ...]) -> set[str]:
    modules = event_modules(features)
    assert load_handlers(modules, trusted=True) == ()
    return {name for name, one in REGISTRY.handlers().items() if one.module in modules}


def test_names_of_features_are_those_of_their_folders() -> None:
    for feature in FEATURES:
        modules = [*feature.events, *([feature.setup] if feature.setup else [])]
        assert modules
        assert all(one.startswith(f"remit.features.{feature.name}.") for one in modules)


def test_every_folder_of_features_with_handlers_is_in_the_list(root: Path) -> None:
    folders = (root / "daemon" / "remit" / "features").glob("*/events.py")
    assert {one.parent.name for one in folders} <= {feature.name for feature in FEATURES}


def test_what_a_feature_requires_is_opened_before_it() -> None:
    opened: set[str] = set()
    for feature in FEATURES:
        assert opened.issuperset(feature.requires)
        opened.add(feature.name)


@pytest.mark.parametrize("name", [feature.name for feature in FEATURES])
async def test_a_daemon_without_a_feature_starts_and_serves_the_rest(
    name: str, tmp_path: Path
) -> None:
    rest = served(feature for feature in FEATURES if feature.name != name)
    kept, gone = events_of(rest), events_of(FEATURES) - events_of(rest)
    assert gone
    async with run_daemon(default_settings(home=tmp_path, **QUIET), rest) as daemon:
        known = daemon.kernel.authority.catalogue.universe.names
        assert set(known) == kept

        async def code(event: str, data: Any = None) -> str:
            answer = await daemon.dispatcher.dispatch(OPERATOR, event, data)
            return answer.error.code if answer.error is not None else "ok"

        assert {await code(event) for event in gone} == {"unknown_event"}
        asked = {"system:health", "agent:list", "time:get_current_time", "config:plan"} & kept
        assert {await code(event) for event in asked} == {"ok"}


async def test_a_call_that_needs_an_approval_is_refused_where_nobody_can_approve(
    tmp_path: Path,
) -> None:
    catalogue = tmp_path / "capabilities.yaml"
    catalogue.write_text(
        "version: 1\ncapabilities:\n"
        "  base: {description: d, event_patterns: ['state:*'], always_included: true}\n",
        encoding="utf-8",
    )
    profiles = tmp_path / "compositions"
    profiles.mkdir()
    (profiles / "careful.yaml").write_text(
        "name: careful\ncapabilities: {base: true}\napproval_required: ['state:set']\n",
        encoding="utf-8",
    )
    rest = tuple(feature for feature in FEATURES if feature.name != "reviews")
    settings = default_settings(
        home=tmp_path / "home", catalogue=catalogue, compositions=profiles, **QUIET
    )
    async with run_daemon(settings, rest) as daemon:
        await daemon.kernel.keyring.add("kim", "k" * 40, "careful")
        kim = daemon.kernel.keyring.principal("kim")
        assert kim is not None
        answer = await daemon.dispatcher.dispatch(kim, "state:set", {"key": "a", "value": 1})
        assert answer.error is not None
        assert answer.error.code == "unavailable"
