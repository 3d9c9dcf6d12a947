"""The token bill: what was put before models."""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="bill",
    events=("remit.features.bill.events",),
)
