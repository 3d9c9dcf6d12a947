"""The answer to "may X do Y?"."""

from typing import Literal

Reason = Literal[
    "granted",
    "explicit_deny",
    "no_grant",
    "unknown_event",
    "review_pending",
    "limit",
    "revoked",
    "unknown_agent",
]
GRANTED: Reason = "granted"
