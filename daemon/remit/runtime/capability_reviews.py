"""Security reviews: which capabilities wait in which profiles, and what was decided about them.

A decision is bound to the hash of the definition that was looked at. The newest decision about a
pair of profile and capability counts; it is stored before it is put in force.
"""

import secrets
from collections.abc import Callable

import anyio
import msgspec
import structlog

from remit.errors import ConflictError, StoreError
from remit.model.cause import Cause
from remit.policy.catalogue import Approval, Catalogue
from remit.policy.plan import Plan
from remit.runtime.approvals import stored_reviews
from remit.runtime.authority import Authority
from remit.runtime.changes import changes_between, holdings, tell
from remit.runtime.config_audit import CHANGED
from remit.runtime.courier import Courier
from remit.runtime.kept import keep
from remit.runtime.pairs import CAPABILITY, Pair, no_such_pair
from remit.runtime.reloader import Outcome, Reloader
from remit.store.protocol import ReviewStore, Store
from remit.store.records import Review, ReviewStatus

log = structlog.get_logger()


class Decision(msgspec.Struct, frozen=True):
    """What was decided about a pair, last."""

    status: ReviewStatus
    definition_hash: str
    by: str
    at: float
    note: str


Decisions = dict[Pair, Decision]


async def load_decisions(store: ReviewStore) -> Decisions:
    """The newest decision about each pair."""
    found: Decisions = {}
    async for review in stored_reviews(store, CAPABILITY):
        body = msgspec.json.decode(review.payload)
        found[Pair(body["profile"], body["capability"])] = Decision(
            review.status,
            body["definition_hash"],
            review.decided_by,
            review.decided_at or review.requested_at,
            review.note,
        )
    return found


def approvals_in(decisions: Decisions) -> frozenset[Approval]:
    """The decisions that were a yes, as the compiler wants them."""
    return frozenset(
        Approval(pair.profile, pair.capability, decision.definition_hash)
        for pair, decision in decisions.items()
        if decision.status == "approved"
    )


class CapabilityReviews:
    """Decides about pairs, and puts that in force."""

    def __init__(
        self,
        store: Store,
        authority: Authority,
        courier: Courier,
        reloader: Reloader,
        decisions: Decisions,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._authority = authority
        self._courier = courier
        self._reloader = reloader
        self._decisions = dict(decisions)
        self._clock = clock
        self._deciding = anyio.Lock()

    def pairs(self, catalogue: Catalogue) -> dict[Pair, ReviewStatus]:
        """Every pair that waits, was rejected or is approved in a revision, in order."""
        found: dict[Pair, ReviewStatus] = {}
        for profile, grant in catalogue.grants.items():
            for capability in grant.pending_review:
                pair = Pair(profile, capability)
                is_rejected = self.decision(catalogue, pair) is not None
                found[pair] = "rejected" if is_rejected else "pending"
            for capability in grant.capabilities:
                if capability in catalogue.fingerprints:
                    found[Pair(profile, capability)] = "approved"
        return dict(sorted(found.items()))

    def decision(self, catalogue: Catalogue, pair: Pair) -> Decision | None:
        """What was decided about the definition that is in force; None when nothing was."""
        found = self._decisions.get(pair)
        is_same = found and found.definition_hash == catalogue.fingerprints.get(pair.capability)
        return found if is_same else None

    async def decide(
        self,
        pair: Pair,
        status: ReviewStatus,
        by: str,
        note: str,
        *,
        definition_hash: str,
    ) -> Plan:
        """Store a decision and put it in force as a new revision; a rejection takes back.

        Raises:
            ConflictError: it is decided so already, or the definition has changed since.
            NotFoundError: no such pair is in force.
        """
        async with self._deciding:
            catalogue = self._authority.catalogue
            known = self.pairs(catalogue)
            if pair not in known:
                raise no_such_pair(pair, known)
            if known[pair] == status:
                raise ConflictError(f"{pair} is {status} already", details={"id": str(pair)})
            if catalogue.fingerprints[pair.capability] != definition_hash:
                message = f"the definition of {pair.capability!r} has changed meanwhile"
                raise ConflictError(message, hint="look at it again: remit review list")
            now = self._clock()
            with anyio.CancelScope(shield=True):
                await self._store.review_add(_record(pair, status, definition_hash, by, note, now))
                self._decisions[pair] = Decision(status, definition_hash, by, now, note)
                # If the definition changed while this was stored, the pair still waits: an
                # approval counts for the hash that was looked at, whatever is in force.
                before = self._authority.catalogue.revision
                plan = self._put_in_force()
                await self._write(by, plan, before=before)
                await keep(self._store, self._authority.current)
            return plan

    async def _write(self, by: str, plan: Plan, *, before: int) -> None:
        try:
            await self._reloader.audit.changed(
                Cause("reviewed", by), plan, before=before, after=before + 1
            )
        except StoreError as error:  # the decision itself is in the audit, and in force
            log.warning("audit_failed", problem=error.message, event_name=CHANGED)

    def _put_in_force(self) -> Plan:
        """Without awaiting, and then everybody is told, as after a reload."""
        authority, fleet = self._authority, self._authority.fleet
        held = holdings(fleet, authority.catalogue)
        plan = authority.approve(approvals_in(self._decisions))
        changes = changes_between(held, holdings(fleet, authority.catalogue))
        revision = authority.catalogue.revision
        self._reloader.announce(Outcome(changed=True, revision=revision, plan=plan))
        tell(self._courier, changes, revision=revision)
        return plan


def _record(
    pair: Pair, status: ReviewStatus, definition_hash: str, by: str, note: str, now: float
) -> Review:
    body = {
        "profile": pair.profile,
        "capability": pair.capability,
        "definition_hash": definition_hash,
    }
    return Review(
        id=f"{pair}@{secrets.token_hex(6)}",
        kind=CAPABILITY,
        subject=str(pair),
        requested_by=by,
        requested_at=now,
        expires_at=None,
        payload=msgspec.json.encode(body),
        status=status,
        decided_by=by,
        decided_at=now,
        note=note,
    )
