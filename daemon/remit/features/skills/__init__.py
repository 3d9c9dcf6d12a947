"""Skills, manifests and extensions in folders: read, watched, handed out."""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="skills",
    events=("remit.features.skills.events",),
    requires=("discovery",),
)
