"""Events that ask the audit."""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="audit",
    events=("remit.features.audit.events",),
)
