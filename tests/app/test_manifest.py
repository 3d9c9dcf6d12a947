"""What is known of events without importing their handlers is what the decorators say."""

from pathlib import Path
from textwrap import dedent

import msgspec
import pytest
from tests.fakes import built_in_handlers

from remit.app.manifest import MANIFEST, built_in_events, plugin_modules
from remit.model.event import EventSpec
from remit.model.names import EventName


def decorated() -> dict[EventName, EventSpec]:
    own = (one for one in built_in_handlers().values() if one.module.startswith("remit."))
    return {one.spec.name: one.spec for one in own}


def test_an_event_that_is_asked_about_is_placed_at_its_decorator() -> None:
    wanted = decorated()
    for name in wanted:
        found = {spec.name: spec for spec in built_in_events(asked=name)}
        assert found[name] == wanted[name]


def test_every_other_event_is_placed_in_its_file() -> None:
    wanted = decorated()
    found = {spec.name: spec for spec in built_in_events()}
    assert found.keys() == wanted.keys()
    for name, spec in found.items():
        assert spec.place is not None
        place = msgspec.structs.replace(spec.place, line=wanted[name].place.line)  # type: ignore[union-attr]
        assert msgspec.structs.replace(spec, place=place) == wanted[name]


def test_the_manifest_names_no_place_of_the_machine_that_wrote_it() -> None:
    for entry in msgspec.json.decode(MANIFEST.read_bytes()):
        assert not Path(entry["place"]["file"]).is_absolute()


@pytest.mark.parametrize("kind", ["dist-info", "egg-info"])
def test_an_installed_package_offers_its_handlers_by_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    meta = tmp_path / f"shop-1.0.{kind}"
    meta.mkdir()
    text = """\
        [console_scripts]
        shop = not_this_one:main

        [remit.handlers]
        shop = good_shop
        more = good_kiosk.handlers:whatever
        """
    (meta / "entry_points.txt").write_text(dedent(text))
    found = plugin_modules()
    assert {"good_shop", "good_kiosk.handlers"} <= set(found)
    assert "not_this_one" not in found
    assert found == sorted(found)


def test_metadata_that_cannot_be_read_offer_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    before = plugin_modules()
    (tmp_path / "empty-1.0.dist-info").mkdir()
    (tmp_path / "file-1.0.dist-info").write_text("no folder")
    (tmp_path / "latin-1.0.dist-info").mkdir()
    (tmp_path / "latin-1.0.dist-info" / "entry_points.txt").write_bytes(b"[remit.handlers]\na=\xff")
    assert plugin_modules() == before
