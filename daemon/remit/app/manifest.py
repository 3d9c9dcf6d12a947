"""Which events there are, without importing their handlers.

What the decorators say about the built-in events stands in `events.json` beside this module, so
commands without a daemon know them in a millisecond. `tools/lib/manifest.py` writes the file, and a
test compares it with the decorators. The daemon goes by the handlers themselves.
"""

import re
import sys
from pathlib import Path

import msgspec

from remit.config.settings.table import Settings
from remit.errors import Place
from remit.kernel.feature import entry_points
from remit.model.event import EventSpec

MANIFEST = Path(__file__).with_name("events.json")
ENTRY_POINT_GROUP = "remit.handlers"
_PACKAGE = str(Path(__file__).parents[1])


def built_in_events(asked: str = "") -> list[EventSpec]:
    """The built-in events, each with the file of its handler.

    Args:
        asked: the event, by any of its names, whose line in that file is looked up as well. The
            manifest has no lines: every edit above a handler would change them.
    """
    specs = msgspec.json.decode(MANIFEST.read_bytes(), type=list[EventSpec])
    return [_placed(spec, with_line=asked in (spec.name, *spec.aliases)) for spec in specs]


def _placed(spec: EventSpec, *, with_line: bool) -> EventSpec:
    if spec.place is None:
        return spec
    file = f"{_PACKAGE}/{spec.place.file}"
    line = _line_of(spec.name, Path(file)) if with_line else 1
    return msgspec.structs.replace(spec, place=Place(file, line))


def _line_of(event: str, file: Path) -> int:
    """The line of the decorator that names an event, or a constant with its name."""
    text = file.read_text(encoding="utf-8")
    literal = re.escape(f'"{event}"')
    constant = re.search(rf"^(\w+) = {literal}$", text, re.MULTILINE)
    name = rf"(?:{literal}|{constant[1]}\b)" if constant else literal
    found = re.search(rf"^@event_handler\(\s*{name}", text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def other_modules(settings: Settings) -> list[str]:
    """The modules with further handlers: those of the configuration, and those of plug-ins.

    Modules beside the settings file can be imported from now on.
    """
    for folder in settings.handler_paths:
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    return list(dict.fromkeys([*settings.handlers, *plugin_modules()]))


def plugin_modules() -> list[str]:
    """The modules that installed packages offer, in the group `remit.handlers`."""
    found = entry_points(ENTRY_POINT_GROUP)
    return sorted({value.partition(":")[0].strip() for _, value in found})
