"""What any store refuses, and the errors all stores share. Policy is the handlers' business."""

import re

import msgspec

from remit.errors import (
    ConflictError,
    InvalidDataError,
    LimitError,
    NotFoundError,
    TooLargeError,
)
from remit.kernel.store.records import StateQuota
from remit.model.principal import OPERATOR_ID
from remit_client.values import misfit

MAX_VALUE_BYTES = 16 * 1024 * 1024
MAX_KEY_BYTES = 1024
_MAX_NAME = 128
_PUBLIC_KEY = re.compile(r"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")
_LAST_CHARACTER = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def encode_value(value: object) -> bytes:
    """The JSON of a state value that every format can carry.

    Raises:
        InvalidDataError: `value` has no JSON.
        TooLargeError: its JSON is beyond 16 MiB.
    """
    found = misfit(value)
    if found is not None:
        raise InvalidDataError(
            f"the value cannot be kept as JSON: {found.problem}",
            hint="send text, numbers, true, false, null, lists and mappings of these",
            details={"path": f"$.value{found.path[1:]}"},
        )
    data = msgspec.json.encode(value)
    if len(data) > MAX_VALUE_BYTES:
        raise TooLargeError(
            f"the value has {len(data):,} bytes, the store takes {MAX_VALUE_BYTES:,}",
            hint="keep large things in a file and store its path",
            details={"limit": MAX_VALUE_BYTES, "size": len(data)},
        )
    return data


def check_state_key(key: str) -> None:
    """Refuse a key that no store can keep."""
    if "\0" in key or not 0 < _byte_length(key) <= MAX_KEY_BYTES:
        raise InvalidDataError(
            f"{_shown(key)} cannot be a state key",
            hint=f"write 1 to {MAX_KEY_BYTES} bytes of text without NUL, as in 'team/a/plan'",
            details={"path": "$.key"},
        )


def check_client_key(name: str, public_key: str, *, path: str = "$.name") -> None:
    """Refuse a name that could be taken for another principal, and what is no CURVE key."""
    if name == OPERATOR_ID:
        raise ConflictError(f"{name!r} is the operator's own name", hint="choose another name")
    if not name.isprintable() or name != name.strip() or not 0 < len(name) <= _MAX_NAME:
        raise InvalidDataError(
            f"{_shown(name)} cannot be the name of a key or an agent",
            hint=f"write 1 to {_MAX_NAME} printable characters, as in 'reviewer-1'",
            details={"path": path},
        )
    if not _PUBLIC_KEY.fullmatch(public_key):
        raise InvalidDataError(
            "that is not a CURVE public key",
            hint="send the 40 Z85 characters of the public key; never the secret one",
            details={"path": "$.public_key"},
        )


def check_version(key: str, found: int, expected: int | None) -> None:
    """Refuse a change that was made against another version than the one in force."""
    if expected is not None and found != expected:
        state = f"has version {found}" if found else "does not exist"
        raise ConflictError(
            f"{key!r} {state}, expected {expected or 'that it does not exist'}",
            hint="read it again and repeat the change on what is there now",
            details={"key": key, "version": found, "expected": expected},
        )


def check_quota(owner: str, quota: StateQuota, before: StateQuota, after: StateQuota) -> None:
    """Refuse a write by which somebody has more of the state than it may; less is always fine."""
    for name, most, was, now in (
        ("max_state_keys", quota.keys, before.keys or 0, after.keys or 0),
        ("max_state_bytes", quota.bytes, before.bytes or 0, after.bytes or 0),
    ):
        if most is not None and now > max(most, was):
            what = name.removeprefix("max_state_")
            raise LimitError(
                f"{owner!r} would have {now:,} {what} of the state, and {most:,} are its limit",
                hint="delete some with state:delete, or let an operator raise the limit",
                details={"limit": name, "most": most, "used": was, "retry_after": None},
            )


def name_taken(name: str) -> ConflictError:
    """The refusal of a second living key of one name."""
    return ConflictError(
        f"a key named {name!r} exists already",
        hint=f"choose another name, or run 'remit key revoke {name}' first",
        details={"name": name},
    )


def public_key_taken() -> ConflictError:
    """The refusal of a public key that was seen before; it does not tell whose it is."""
    return ConflictError(
        "this public key was registered before",
        hint="make a new key pair; a public key is registered once, also after revocation",
    )


def no_such_key(name: str) -> NotFoundError:
    """The answer to revoking what does not live."""
    return NotFoundError(
        f"no living key is named {name!r}",
        hint="'remit key list' shows the names",
        details={"name": name},
    )


def after_prefix(prefix: str) -> str | None:
    """The first text, in code point order, behind all texts that start with `prefix`."""
    stem = prefix.rstrip(chr(_LAST_CHARACTER))
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    # Surrogates are no characters: a database could not even be asked about them.
    if following in _SURROGATES:
        following = _SURROGATES.stop
    return stem[:-1] + chr(following)


def check_text(text: str, path: str) -> None:
    """Refuse text that is not Unicode (a lone surrogate), before a database chokes on it."""
    if _byte_length(text) < 0:
        raise InvalidDataError(
            f"{_shown(text)} is not Unicode text",
            hint="a lone surrogate has no UTF-8",
            details={"path": path},
        )


def _byte_length(text: str) -> int:
    """The length in UTF-8, or -1 when there is none."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return -1


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 60 else text[:57] + "...")  # noqa: PLR2004 - one screen line
