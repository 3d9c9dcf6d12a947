"""Modules with mistakes: told by `check` and `lint` where they stand, and never served."""

import json
from typing import Any

from tests.acceptance.site import Site

TWO = """from remit.kernel.dispatch.registry import event_handler


@event_handler("booth:open", effect="read", capability="booth")
def {name}() -> str:
    "Open."
    return "{name}"
"""
BOOTH = "  booth: {{description: A booth{more}}}\n"


def define(site: Site, *capabilities: str) -> None:
    with site.catalogue.open("a", encoding="utf-8") as file:
        file.writelines(capabilities)


def report(site: Site, command: str) -> tuple[int, Any]:
    done = site.run(command, "--json")
    return done.returncode, json.loads(done.stdout)


def test_an_effect_that_is_none_is_refused_when_the_module_is_imported(site: Site) -> None:
    site.add_module("booth", TWO.format(name="first").replace('"read"', '"reed"'))
    site.configure(handlers=["booth"])
    code, checked = report(site, "check")
    (error,) = checked["errors"]
    assert code == 2
    assert (error["file"], error["line"]) == (str(site.folder / "booth.py"), 4)
    assert error["code"] == "invalid_handler"
    assert "'reed'" in error["message"]
    assert error["hint"] == "did you mean 'read'?"
    done = site.run("resolve", "observer", "--max-effect", "read")
    assert (done.returncode, "booth:open" in done.stdout) == (0, False)
    assert "Traceback" not in done.stderr


def test_two_modules_with_one_event_are_an_error_in_both_files(site: Site) -> None:
    site.add_module("stall", TWO.format(name="first"))
    site.add_module("kiosk", "# another\n" + TWO.format(name="second"))
    site.configure(handlers=["stall", "kiosk"])
    define(site, BOOTH.format(more=""))
    places = [(str(site.folder / "kiosk.py"), 5), (str(site.folder / "stall.py"), 4)]
    code, checked = report(site, "check")
    assert (code, checked["ok"]) == (2, False)
    found = [(one["file"], one["line"]) for one in checked["errors"]]
    assert found == places
    assert {one["code"] for one in checked["errors"]} == {"duplicate_event"}
    assert all("'booth:open'" in one["message"] for one in checked["errors"])
    shown = site.run("check")
    assert shown.returncode == 2
    assert all(f"{file}:{line}:" in shown.stderr for file, line in places)
    code, linted = report(site, "lint")
    assert code == 1
    assert [(one["file"], one["line"]) for one in linted["handler_mistakes"]] == places


def test_a_handler_that_the_patterns_of_its_capability_leave_out_is_told(site: Site) -> None:
    site.add_module("stall", TWO.format(name="first"))
    site.configure(handlers=["stall"])
    define(site, BOOTH.format(more=", event_patterns: [state:get]"))
    code, checked = report(site, "check")
    (warning,) = (one for one in checked["warnings"] if one["code"] == "left_out_event")
    assert code == 0, "the patterns are exact where there are any"
    assert warning["file"] == "capabilities.yaml"
    assert warning["line"] == len(site.catalogue.read_text().splitlines())
    assert "'booth:open'" in warning["message"]
    code, linted = report(site, "lint")
    (finding,) = linted["other_capability"]
    assert (code, finding["name"]) == (1, "booth:open")
    assert (finding["file"], finding["line"]) == (str(site.folder / "stall.py"), 4)


def test_a_handler_that_names_another_capability_than_the_files_is_drift(site: Site) -> None:
    site.add_module("stall", TWO.format(name="first"))
    site.configure(handlers=["stall"])
    define(site, BOOTH.format(more=""), "  shop: {description: x, event_patterns: [booth:open]}\n")
    _, linted = report(site, "lint")
    (finding,) = linted["other_capability"]
    assert finding["name"] == "booth:open"
    assert (finding["file"], finding["line"]) == (str(site.folder / "stall.py"), 4)
    assert "'booth'" in finding["message"]
    assert "'shop'" in finding["message"]


def test_what_is_shipped_has_no_such_mistakes(site: Site) -> None:
    _, linted = report(site, "lint")
    assert linted["other_capability"] == linted["handler_mistakes"] == []
    _, checked = report(site, "check")
    assert {one["code"] for one in checked["warnings"]} == {"review_pending"}
