"""The audit of a home without its daemon: proved from its files, and accepted as it is."""

import time
from typing import Any

import anyio
import msgspec

from remit.config.settings.home import Home
from remit.config.settings.lock import hold_lock
from remit.errors import HomeError
from remit.kernel.audit.chain import GENESIS, AuditEntry, AuditHead
from remit.kernel.audit.head import HeadFile, HeadTracker
from remit.kernel.audit.proof import Archive, AuditReader, prove
from remit.kernel.audit.store import AuditRows
from remit.kernel.store.database import Database
from remit.model.principal import OPERATOR_ID
from remit_client.errors import BadKey
from remit_client.keys import load_key


def prove_files(home: Home, expected_head: str | None = None) -> dict[str, Any]:
    """The proof of the audit that lies in a home; nothing is changed.

    Raises:
        HomeError: the server's key cannot be read.
        NotFoundError: there is no store.
    """
    if home.audit_head.is_file() and not home.database.is_file():
        return _lost(f"{home.database} is missing, and with it every row that is not in an archive")
    reader = AuditReader(home.database, _head_file(home))
    return anyio.run(prove, reader, Archive(home.audit), expected_head)


def _lost(problem: str) -> dict[str, Any]:
    return {"rows": 0, "head": GENESIS, "ok": False, "first_bad": None, "problem": problem}


def head_of_files(home: Home) -> AuditHead:
    """What vouches for the end of the audit, and whether it fits.

    Raises:
        HomeError: the server's key cannot be read.
        NotFoundError: there is no store.
    """
    return anyio.run(AuditReader(home.database, _head_file(home)).audit_head)


def accept_files(home: Home) -> dict[str, Any]:
    """Take the end of the audit, and the beginning of its archives, as they are found.

    What was wrong until now is a row of the audit; a chain that is broken stays so.

    Raises:
        HomeError: a daemon runs here, or the server's key cannot be read.
    """
    with hold_lock(home):
        return anyio.run(_accept, home)


async def _accept(home: Home) -> dict[str, Any]:
    archive, tracker = Archive(home.audit), HeadTracker(_head_file(home))
    database = Database(str(home.database))
    rows = AuditRows(database, head=tracker)
    async with database:
        before = await prove(rows, archive)
        await rows.audit_accept(archive.begin() or (await rows.audit_verify()).anchor)
        if not before["ok"]:
            await rows.audit_append(_row(before["problem"]))
        after = await prove(rows, archive)
    return {"accepted": before["problem"]} | after


def _row(problem: str) -> AuditEntry:
    return AuditEntry(
        at=time.time(),
        principal=OPERATOR_ID,
        event="audit:accept",
        outcome="allowed",
        reason="accepted",
        decision="",
        revision=0,
        details=msgspec.json.encode({"problem": problem[:1000]}),
    )


def _head_file(home: Home) -> HeadFile:
    try:
        secret = load_key(home.server_key).secret_key
    except BadKey as error:
        hint = "only who may read the server's key can prove the head of the audit"
        raise HomeError(error.message, hint=hint) from error
    return HeadFile(home.audit_head, secret)
