"""What any store refuses of agents, sessions, mail, reviews and blobs, and its errors."""

import math
from collections.abc import Iterable, Mapping
from typing import get_args

import msgspec

from remit.errors import ConflictError, InvalidDataError, LimitError, NotFoundError, TooLargeError
from remit.kernel.store.checks import MAX_VALUE_BYTES, check_client_key, check_state_key, check_text
from remit.kernel.store.records import (
    AgentRecord,
    FileLimits,
    Review,
    ReviewStatus,
    SessionRecord,
    TokenRecord,
)
from remit.model.grant import SessionKey

_LONGEST_RETRY = 60.0


def check_agent(record: AgentRecord) -> None:
    """Refuse an agent that could be taken for another principal, or could not be kept."""
    check_client_key(record.id, record.public_key, path="$.id")
    for field in ("parent", "profile", "token_hash"):
        check_text(getattr(record, field) or "", f"$.{field}")
    check_time(record.created_at, "$.created_at")
    check_size(record.body, "$.body")


def check_mail(to: str, message: bytes, sender: str, expires_at: float) -> None:
    """Refuse a message that could not be kept or read."""
    check_text(to, "$.to")
    check_text(sender, "$.sender")
    check_time(expires_at, "$.expires_at")
    check_json(message, "$.message")


def check_review(review: Review) -> None:
    """Refuse a review that could not be kept, shown or decided."""
    for field in ("id", "kind", "subject", "requested_by", "decided_by", "note"):
        check_text(getattr(review, field), f"$.{field}")
    if not review.id:
        raise InvalidDataError("a review needs an id", details={"path": "$.id"})
    check_status(review.status)
    check_time(review.requested_at, "$.requested_at")
    check_time(review.expires_at or 0.0, "$.expires_at")
    check_time(review.decided_at or 0.0, "$.decided_at")
    check_json(review.payload, "$.payload")


def check_session(record: SessionRecord) -> None:
    """Refuse a session that could not be kept or found."""
    check_session_name(record.owner, record.name)
    check_size(record.body, "$.body")


def check_session_name(owner: str, name: str) -> None:
    """Refuse what is no owner, or no name of a session."""
    check_text(owner, "$.owner")
    check_text(name, "$.session")
    if not owner or not name or "\0" in owner + name:
        raise InvalidDataError("a session needs an owner and a name", details={"path": "$.session"})


def check_made(capability: str, body: bytes = b"") -> None:
    """Refuse what is no id of a capability, and a body beyond what any store takes."""
    check_text(capability, "$.id")
    if not capability or "\0" in capability:
        raise InvalidDataError("a capability needs an id", details={"path": "$.id"})
    check_size(body, "$.body")


def check_token(record: TokenRecord) -> None:
    """Refuse a token that could not be kept or found."""
    for field in ("hash", "owner", "owner_key", "audience"):
        check_text(getattr(record, field), f"$.{field}")
    if not record.hash or not record.owner:
        raise InvalidDataError("a token needs a hash and an owner", details={"path": "$.hash"})
    check_time(record.created_at, "$.created_at")
    check_time(record.expires_at, "$.expires_at")


def check_tool_names(owner: str, names: Mapping[str, str]) -> None:
    """Refuse names that could not be kept, or that two events would share."""
    check_text(owner, "$.owner")
    for event, name in names.items():
        check_text(event, "$.names")
        check_text(name, "$.names")
    if not owner or "" in names or "" in names.values():
        raise InvalidDataError("a tool name needs an owner and an event")
    if len(set(names.values())) < len(names):
        raise name_given(owner)


def name_given(owner: str) -> ConflictError:
    """The refusal of a second name for an event, or of a name for a second event."""
    return ConflictError(f"a tool name of {owner!r} would change its event")


def names_full(limit: int) -> LimitError:
    """The refusal of more names than are kept."""
    return LimitError(
        f"{limit:,} tool names are kept already",
        hint="end agents that are done: their names go with them",
        details={"limit": "tool_names", "retry_after": None},
    )


def token_taken() -> ConflictError:
    """Two tokens have one hash: they are the same."""
    return ConflictError("that token is there already")


def check_decision(status: str, by: str, note: str, now: float) -> None:
    """Refuse what is no decision."""
    check_status(status)
    if status == "pending":
        raise InvalidDataError(
            "'pending' is no decision", hint="approve or reject it", details={"path": "$.status"}
        )
    check_text(by, "$.by")
    check_text(note, "$.note")
    check_time(now, "$.now")


def check_blob(name: str, data: bytes) -> None:
    """Refuse a blob that could not be kept or found."""
    check_state_key(name)
    check_size(data, "$.data")


def check_status(status: str) -> None:
    """Refuse a status that no review can have."""
    known = get_args(ReviewStatus)
    if status not in known:
        raise InvalidDataError(
            f"{status!a} is not the status of a review",
            hint=f"write one of {', '.join(known)}",
            details={"path": "$.status"},
        )


def check_time(seconds: float, path: str) -> None:
    """Refuse what is no moment: no database can compare NaN."""
    if not math.isfinite(seconds):
        raise InvalidDataError(
            f"{seconds} is not a time",
            hint="send seconds since the epoch",
            details={"path": path},
        )


def check_json(data: bytes, path: str) -> None:
    """Refuse what is not JSON, or too large."""
    check_size(data, path)
    try:
        msgspec.json.decode(data)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidDataError(
            f"this is not JSON: {error}", hint="send JSON text", details={"path": path}
        ) from error


def check_size(data: bytes, path: str) -> None:
    """Refuse what is larger than any store takes."""
    if len(data) > MAX_VALUE_BYTES:
        raise TooLargeError(
            f"this has {len(data):,} bytes, the store takes {MAX_VALUE_BYTES:,}",
            hint="keep large things in a file and store its path",
            details={"path": path, "limit": MAX_VALUE_BYTES, "size": len(data)},
        )


def agent_lives(agent: str) -> ConflictError:
    """The refusal of a second principal under the name of an agent."""
    return ConflictError(
        f"an agent named {agent!r} lives already",
        hint="choose another name, or terminate that agent first",
        details={"id": agent},
    )


def no_such_agent(agent: str) -> NotFoundError:
    """The answer to changing what does not live."""
    return NotFoundError(
        f"no living agent is named {agent!r}",
        hint="'remit agents' shows those that live",
        details={"id": agent},
    )


def mailbox_full(to: str, limit: int, max_bytes: int, *, expires_in: float) -> LimitError:
    """The refusal of one message too many; the first place is free after `expires_in` seconds."""
    return LimitError(
        f"{limit} messages wait for {to!r} already, or {max_bytes:,} bytes with this one",
        hint="wait until it is back, or until messages expire",
        details={
            "limit": limit,
            "max_bytes": max_bytes,
            "retry_after": min(expires_in, _LONGEST_RETRY),
        },
    )


def review_exists(review: str) -> ConflictError:
    """The refusal of a second review under one id."""
    return ConflictError(
        f"there is a review {review!r} already",
        hint="ask under a new id",
        details={"id": review},
    )


def no_such_review(review: str) -> NotFoundError:
    """The answer to deciding what was never asked."""
    return NotFoundError(
        f"there is no review {review!r}",
        hint="'remit review list' shows them",
        details={"id": review},
    )


def decide(review: Review, status: ReviewStatus, by: str, note: str, now: float) -> Review:
    """The review as it is after the decision.

    Raises:
        ConflictError: it was decided before, or its time is over and it would be approved.
    """
    too_late = review.expires_at is not None and review.expires_at <= now
    if review.status != "pending":
        problem, found = f"was {review.status} before", review.status
    elif status == "approved" and too_late:
        problem, found = "has expired", "expired"
    else:
        return msgspec.structs.replace(
            review, status=status, decided_by=by, decided_at=now, note=note
        )
    raise ConflictError(
        f"review {review.id!r} {problem}",
        hint="repeat the request to get a new review",
        details={"id": review.id, "status": found},
    )


# What any store refuses of the files of sessions, and its errors.


def check_session_key(session: SessionKey) -> None:
    """Refuse what is no session."""
    for text, field in ((session.owner, "owner"), (session.name, "session")):
        check_text(text, f"$.{field}")
        if "\0" in text:
            raise InvalidDataError("a session has no NUL in it", details={"path": f"$.{field}"})
    check_text(session.owner_key, "$.owner_key")
    if not session.owner:
        raise InvalidDataError("a session needs an owner", details={"path": "$.owner"})


def check_path(path: str) -> None:
    """Refuse a path that no store can keep; which paths make sense is the handlers' business."""
    check_state_key(path)
    if not path.startswith("/"):
        raise InvalidDataError(
            "a path starts with '/'", hint="as in '/docs/readme.txt'", details={"path": "$.path"}
        )


def check_file(session: SessionKey, path: str, content: bytes, limits: FileLimits) -> None:
    """Refuse a file that could not be kept or found."""
    check_session_key(session)
    check_path(path)
    if path.endswith("/"):
        raise is_directory(path)
    largest = min(limits.size, MAX_VALUE_BYTES)
    if len(content) > largest:
        raise TooLargeError(
            f"the file has {len(content):,} bytes; {largest:,} are the limit",
            hint="split it into more files",
            details={"limit": largest, "size": len(content)},
        )


def check_quota(limits: FileLimits, files: int, size: int) -> None:
    """Refuse what would be too much for one session."""
    if files > limits.count:
        raise _too_much(f"{limits.count:,} files", "files")
    if size > limits.total:
        raise _too_much(f"{limits.total:,} bytes", "bytes")


def check_areas(limits: FileLimits, areas: int) -> None:
    """Refuse files in one session too many."""
    if areas > limits.areas:
        raise LimitError(
            f"{limits.areas:,} sessions of one owner keep files already",
            hint="delete the files of sessions that are done, or close them",
            details={"limit": "sessions", "retry_after": None},
        )


def check_way(path: str, files: Iterable[str]) -> None:
    """Refuse a path that leads through one of these files, which lie above it."""
    for file in files:
        raise ConflictError(
            f"{file!r} is a file, so nothing can lie below it",
            hint="choose another path, or delete that file first",
            details={"path": file},
        )


def is_directory(path: str) -> ConflictError:
    """The refusal of a file where a directory is."""
    return ConflictError(
        f"{path!r} is a directory",
        hint="choose a path inside of it, or another name",
        details={"path": path},
    )


def _too_much(what: str, limit: str) -> LimitError:
    return LimitError(
        f"the session may keep {what}, and this would be more",
        hint="delete files that are done",
        details={"limit": limit, "retry_after": None},
    )
