"""What use teaches discovery: calls are watched, and lessons are kept across restarts."""

from hashlib import blake2b

import msgspec

from remit.errors import StoreError
from remit.features.discovery.experience import Experience, Lesson
from remit.features.discovery.store import LessonRows
from remit.model.descriptor import tool_id

_UPKEEP = ("discovery:", "event:", "permission:", "session:", "system:")
"""Everybody calls these for everything: they answer no request in particular."""
_FAULTS = frozenset({"internal", "timeout", "store_unavailable"})
"""Failures of the tool; the others are mistakes or refusals of the caller."""
_WRITE_SECONDS = 2.0

_encode = msgspec.json.encode
_decoder = msgspec.json.Decoder(Lesson)


class Watch:
    """Tells experience how the calls went that followed a question."""

    def __init__(self, experience: Experience) -> None:
        self._experience = experience
        self.waiting = experience.waiting
        """Empty when nobody asked: then there is nothing to watch, and that costs nothing."""

    def answered(self, caller: str, session: str | None, event: str, code: str = "") -> None:
        """A call was answered, well or with an error code."""
        if (caller, session or "") not in self.waiting or event.startswith(_UPKEEP):
            return
        if not code or code in _FAULTS:
            self._experience.used(caller, session or "", tool_id(event), failed=bool(code))


async def load_lessons(store: LessonRows, tenant: str, experience: Experience) -> None:
    """Begin with what earlier runs learned; a lesson that cannot be read is left out."""
    found = []
    for body in (await store.lesson_list(tenant)).values():
        try:
            found.append(_decoder.decode(body))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
    experience.load(found)


async def write_lessons(store: LessonRows, tenant: str, experience: Experience) -> None:
    """Write down what was learned since the last time; what cannot be written waits."""
    put, removed = experience.take_changes()
    if not put and not removed:
        return
    try:
        await store.lesson_write(
            tenant,
            {_name(lesson): _encode(lesson) for lesson in put},
            [_name(lesson) for lesson in removed],
        )
    except StoreError:
        experience.give_back(put, removed)
        raise


async def keep_lessons(store: LessonRows, tenant: str, experience: Experience) -> None:
    """Write lessons from time to time until cancelled, and once more then."""
    import anyio  # noqa: PLC0415 - the dispatcher imports this module, and so do commands
    import structlog  # noqa: PLC0415 - the same

    log = structlog.get_logger()
    try:
        while True:
            await anyio.sleep(_WRITE_SECONDS)
            try:
                await write_lessons(store, tenant, experience)
            except StoreError as error:
                log.warning("lessons_not_written", problem=str(error))
    finally:
        with anyio.move_on_after(_WRITE_SECONDS, shield=True):
            await write_lessons(store, tenant, experience)


def _name(lesson: Lesson) -> str:
    return blake2b(_encode(lesson.key), digest_size=16).hexdigest()
