"""Capabilities that are made at run time, in versions."""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="capabilities",
    events=("remit.features.capabilities.events",),
    setup="remit.features.capabilities.service",
)
