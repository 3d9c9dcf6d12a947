"""Write `daemon/remit/app/events.json` from the decorators: `tools/lib/manifest.py [--check]`.

Run it when an event or a flag of one was added, changed or taken away; `--check` only compares.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from remit.app.features import load_all_handlers
from remit.app.manifest import MANIFEST
from remit.config.settings.load import load_settings
from remit.model.event import EventSpec

PACKAGE = MANIFEST.parents[1]
REPAIR = "python tools/lib/manifest.py"


def manifest() -> bytes:
    """What the decorators of the built-in events say, one event a line."""
    with tempfile.TemporaryDirectory() as empty:
        settings = load_settings({"home": empty}, {}, empty)
    handlers = load_all_handlers(settings).handlers.values()
    own = [one.spec for one in handlers if one.module.startswith("remit.")]
    lines = [msgspec.json.encode(_shown(spec)) for spec in sorted(own, key=lambda one: one.name)]
    return b"[\n" + b",\n".join(lines) + b"\n]\n"


def _shown(spec: EventSpec) -> dict[str, Any]:
    """The flags that are not as usual, and the file without its line."""
    usual = msgspec.structs.asdict(EventSpec(name=spec.name))
    told = {
        key: value
        for key, value in msgspec.structs.asdict(spec).items()
        if key == "name" or value != usual[key]
    }
    if spec.place is not None:
        told["place"] = {"file": Path(spec.place.file).relative_to(PACKAGE).as_posix()}
    return told


def main(arguments: list[str]) -> int:
    """Write the manifest, or tell whether it is as the decorators say."""
    wanted = manifest()
    if MANIFEST.is_file() and MANIFEST.read_bytes() == wanted:
        print(f"{os.path.relpath(MANIFEST)} is as the decorators say")
        return 0
    if "--check" in arguments:
        print(f"{os.path.relpath(MANIFEST)} is not as the decorators say: {REPAIR}")
        return 1
    MANIFEST.write_bytes(wanted)
    print(f"{os.path.relpath(MANIFEST)} is written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
