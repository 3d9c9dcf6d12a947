"""time:* — the date and the time, anywhere."""

from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Annotated, Any, Literal

import msgspec

from remit.errors import InvalidDataError
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.model.names import did_you_mean

Zone = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
Format = Literal["iso8601", "unix", "human"]

_ALWAYS_KNOWN = "UTC"


@event_handler(
    "time:get_current_time", capability="current_time", effect="read", tool="get_current_time"
)
def get_current_time(
    ctx: Context,
    timezone: Zone = _ALWAYS_KNOWN,
    format: Format = "iso8601",  # noqa: A002
) -> dict[str, Any]:
    """Tell the current date and time.

    Args:
        timezone: a zone of the IANA database, as in 'Europe/Berlin'.
        format: iso8601, unix (whole seconds since 1970), or human.
    """
    now = datetime.fromtimestamp(ctx.kernel.wall_clock(), _zone(timezone))
    return {"timestamp": _written(now, format), "timezone": timezone, "format": format}


def _written(now: datetime, style: Format) -> str | int:
    if style == "unix":
        return int(now.timestamp())
    if style == "iso8601":
        return now.isoformat(timespec="seconds")
    return f"{now:%A}, {now.day} {now:%B %Y}, {now:%H:%M:%S} {now:%Z} (UTC{now:%z})"


def _zone(name: str) -> tzinfo:
    """A zone by its exact name.

    Raises:
        InvalidDataError: nobody has heard of it.
    """
    if name == _ALWAYS_KNOWN:
        return UTC
    known = _known_zones()
    if name not in known:  # looked up there, so that no name is ever tried out as a path
        same = [zone for zone in known if zone.casefold() == name.strip().casefold()]
        hint = f"did you mean {min(same)!r}?" if same else did_you_mean(name, known)
        raise InvalidDataError(
            f"there is no time zone {name!a}",
            hint=hint or "write a name of the IANA database, as in 'Europe/Berlin', or 'UTC'",
            details={"path": "$.timezone"},
        )
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - a command that asks for names needs no zones

    return ZoneInfo(name)


@cache
def _known_zones() -> frozenset[str]:
    from zoneinfo import available_timezones  # noqa: PLC0415 - see above

    return frozenset(available_timezones())
