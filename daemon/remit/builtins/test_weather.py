"""weather:* — made-up weather, always the same for a place, to try out whether tools are called."""

import zlib
from typing import Annotated, Any

import msgspec

from remit.errors import InvalidDataError
from remit.runtime.registry import event_handler

City = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Days = Annotated[int, msgspec.Meta(ge=1, le=14)]

_CONDITIONS = ("sunny", "partly cloudy", "cloudy", "rain", "thunderstorm", "snow", "fog")


@event_handler(
    "weather:get_weather", capability="test_weather", effect="read", inline=True, tool="get_weather"
)
def get_weather(city: City) -> dict[str, Any]:
    """Tell the weather of a city: made up, and the same each time.

    Args:
        city: its name, as in 'Lisbon'.
    """
    low, high, condition, more = _day(city, 0)
    return {
        "city": city,
        "temperature_c": (low + high) // 2,
        "condition": condition,
        "humidity_percent": 30 + more % 65,
        "wind_kmh": more % 60,
        "is_mock": True,
    }


@event_handler(
    "weather:get_forecast",
    capability="test_weather",
    effect="read",
    inline=True,
    tool="get_forecast",
)
def get_forecast(city: City, days: Days = 3) -> dict[str, Any]:
    """Tell the weather of a city for some days: made up, and the same each time.

    Args:
        city: its name, as in 'Lisbon'.
        days: how many days, from today on.
    """
    forecast = []
    for number in range(days):
        low, high, condition, _ = _day(city, number)
        forecast.append({"day": number, "low_c": low, "high_c": high, "condition": condition})
    return {"city": city, "days": forecast, "is_mock": True}


def _day(city: str, number: int) -> tuple[int, int, str, int]:
    """Low, high and condition of a day, and a number to make up the rest from."""
    place = " ".join(city.split()).casefold()
    if not place:
        raise InvalidDataError("the city has no name", details={"path": "$.city"})
    seed = zlib.crc32(f"{place}\n{number}".encode("utf-8", "surrogatepass"))
    low = seed % 40 - 12
    return low, low + 3 + seed // 40 % 10, _CONDITIONS[seed // 400 % len(_CONDITIONS)], seed // 2800
