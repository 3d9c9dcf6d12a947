"""The definition files: what edits of them would change, and putting them in force."""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="config",
    events=("remit.features.config.events",),
)
