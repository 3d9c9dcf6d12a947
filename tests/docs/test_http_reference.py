"""The page about HTTP has a line for every route, status and limit, and for nothing else."""

import msgspec
from tests.docs.pages import ROOT, codes, rows, sections

from remit.faces.http.operations import OPERATIONS
from remit.faces.http.responses import STATUS
from remit.faces.http.server import HttpLimits

PAGE = sections(ROOT / "docs" / "reference" / "http.md")


def test_every_route_is_documented_with_its_event_and_no_other() -> None:
    documented = {route: cells[0].strip("`") for route, cells in rows(PAGE["Routes"]).items()}
    assert documented == {f"{one.method} {one.path}": one.event or "-" for one in OPERATIONS}


def test_every_query_parameter_is_documented() -> None:
    documented = rows(PAGE["Routes"])
    for one in OPERATIONS:
        told = set(codes(documented[f"{one.method} {one.path}"][1]))
        assert {asked.name for asked in one.query} <= told, one.name


def test_every_code_is_documented_with_its_status_and_no_other() -> None:
    documented = {code: cells[0] for code, cells in rows(PAGE["Statuses"]).items()}
    assert documented == {code: str(status) for code, status in STATUS.items()}


def test_every_limit_is_documented_and_no_other() -> None:
    assert set(rows(PAGE["Limits"])) == {one.name for one in msgspec.structs.fields(HttpLimits)}
