"""What the audit tells about the data of a request: enough to know what was asked, no secrets."""

import re
from typing import Any

import msgspec

MAX_BYTES = 2048
MAX_TEXT = 200
_MAX_ITEMS = 10
_MAX_KEYS = 24
_MAX_DEPTH = 4
_MASK = "***"
_SECRET = re.compile(
    r"secret|token|passw|passphrase|credential|private|api_?key|access_?key|authoriz|cookie",
    re.IGNORECASE,
)
_ENVIRONMENTS = frozenset({"env", "environment", "headers"})


def summary(data: Any) -> dict[str, Any]:
    """A bounded summary of request data, with what looks like a secret masked."""
    try:
        plain = msgspec.to_builtins(data, str_keys=True)
    except (TypeError, ValueError, RecursionError):
        return {"unreadable": True}
    if not isinstance(plain, dict):
        plain = {"value": plain}
    short = _short(plain, 0)
    size = len(msgspec.json.encode(short))
    if size <= MAX_BYTES:
        return dict(short)
    return {"shortened": True, "bytes": size, "fields": [_text(str(key)) for key in short][:10]}


def _short(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict | list) and depth == _MAX_DEPTH:
        return f"… ({len(value)} inside)"
    if isinstance(value, dict):
        return _object(value, depth)
    if isinstance(value, list):
        shown = [_short(item, depth + 1) for item in value[:_MAX_ITEMS]]
        more = len(value) - len(shown)
        return [*shown, f"… ({more} more)"] if more else shown
    return value


def _object(value: dict[str, Any], depth: int) -> dict[str, Any]:
    # A state value is as secret as the name of its key.
    masked = {"value"} if _is_secret(value.get("key")) else set()
    shown: dict[str, Any] = {}
    for name in list(value)[:_MAX_KEYS]:
        inside = value[name]
        if inside is not None and (name in masked or _is_secret(name)):
            shown[_text(name)] = _MASK
        elif name in _ENVIRONMENTS and isinstance(inside, dict):
            shown[name] = dict.fromkeys(map(_text, list(inside)[:_MAX_KEYS]), _MASK)
        else:
            shown[_text(name)] = _short(inside, depth + 1)
    if len(value) > _MAX_KEYS:
        shown["…"] = f"{len(value) - _MAX_KEYS} more"
    return shown


def _is_secret(name: Any) -> bool:
    return isinstance(name, str) and _SECRET.search(name) is not None


def _text(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:100]}… ({len(text)} characters)"
