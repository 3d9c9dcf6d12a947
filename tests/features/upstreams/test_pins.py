"""What is kept about upstream servers: all of it, or nothing that anybody would trust."""

import os
import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.features.upstreams.pins import (
    KnownServer,
    Pin,
    Pins,
    read_pins,
    served_tools,
    write_pins,
)
from remit.model.upstream import Upstream, UpstreamTool

TOOL = UpstreamTool(name="Now", description="Tells the time.", input_schema={"type": "object"})
TIME = Upstream(name="time", command="clock")


def pin(tool: UpstreamTool = TOOL, segment: str = "now") -> Pin:
    mark = tool.fingerprint(TIME.origin)
    return Pin(segment=segment, status="trusted", tool=tool, fingerprint=mark)


KNOWN = KnownServer(name="time", origin=TIME.origin, tools={"Now": pin()})


def raw(folder: Path) -> Path:
    return folder / "time.json"


def test_what_is_written_is_read_again_by_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "upstreams"
    write_pins(folder, KNOWN)
    assert read_pins(folder, ["time", "other"]) == Pins({"time": KNOWN})
    assert stat.S_IMODE(raw(folder).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [path.name for path in folder.iterdir()] == ["time.json"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text[: len(text) // 2], id="cut"),
        pytest.param(lambda text: text.replace("trusted", "surely"), id="unknown-status"),
        pytest.param(lambda text: text.replace('"segment"', '"part"'), id="unknown-key"),
        pytest.param(lambda text: text.replace('"now"', '"Now Or Never"'), id="no-event"),
        pytest.param(lambda text: text.replace('{"Now":', '{"Then":'), id="another-tool-inside"),
        pytest.param(lambda text: text.replace('"name":"time"', '"name":"t"'), id="another-server"),
        pytest.param(lambda _: "[" * 100_000, id="deep"),
        pytest.param(lambda _: "", id="empty"),
    ],
)
def test_a_damaged_file_is_trusted_in_nothing_and_told(tmp_path: Path, change: object) -> None:
    write_pins(tmp_path, KNOWN)
    text = raw(tmp_path).read_text()
    raw(tmp_path).write_text(change(text))  # type: ignore[operator]
    found = read_pins(tmp_path, ["time"])
    assert found.known == {}
    assert [problem.code for problem in found.problems] == ["damaged_pins"]
    assert found.problems[0].place.file == str(raw(tmp_path))


def test_a_pipe_in_the_place_of_the_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(raw(tmp_path))
    found = read_pins(tmp_path, ["time"])
    assert found.known == {}
    assert [problem.code for problem in found.problems] == ["damaged_pins"]


def test_two_tools_never_share_an_event(tmp_path: Path) -> None:
    other = UpstreamTool(name="NOW")
    write_pins(
        tmp_path, msgspec.structs.replace(KNOWN, tools={"Now": pin(), "NOW": pin(other, "now")})
    )
    assert "share" in read_pins(tmp_path, ["time"]).problems[0].message


def test_a_folder_that_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    blocked = tmp_path / "upstreams"
    blocked.write_text("a file")
    with pytest.raises(OSError, match="exists"):
        write_pins(blocked, KNOWN)
    assert blocked.read_text() == "a file"


def test_only_what_is_trusted_and_let_in_is_an_event() -> None:
    def events(upstream: Upstream, **changes: object) -> list[str]:
        changed = msgspec.structs.replace(pin(), **changes)
        known = msgspec.structs.replace(KNOWN, tools={"Now": changed})
        return [str(event) for event in served_tools(upstream, known)]

    assert events(TIME) == ["mcp:time:now"]
    assert events(TIME, status="pending") == []
    assert events(TIME, status="rejected") == []
    assert events(TIME, gone=True) == []
    assert events(TIME, fingerprint="0" * 64) == []
    assert events(msgspec.structs.replace(TIME, exclude=("N*",))) == []
    assert events(msgspec.structs.replace(TIME, args=("elsewhere",))) == []


@given(
    st.sampled_from(
        ["name", "title", "description", "input_schema", "output_schema", "annotations"]
    )
)
def test_a_pin_that_somebody_edited_is_not_served(field: str) -> None:
    other: object = {"x": 1} if "schema" in field or field == "annotations" else "other"
    edited = msgspec.structs.replace(TOOL, **{field: other})
    changed = msgspec.structs.replace(pin(), tool=edited)
    assert pin().is_served(TIME.origin)
    assert not changed.is_served(TIME.origin)
