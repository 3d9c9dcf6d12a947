"""Questions about rights: who may do what, why, and what an edit would change."""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="permissions",
    events=(
        "remit.features.permissions.check",
        "remit.features.permissions.profiles",
        "remit.features.permissions.drafts",
        "remit.features.permissions.capabilities",
    ),
)
