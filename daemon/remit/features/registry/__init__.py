"""Tools and skills that prove themselves, linked for a mission.

Promises:
- Nothing here grants anything: every answer is computed from what the caller's grant shows.
- A need that nothing fits is missing; the nearest thing is never put in its place.
- A link that fails binds nothing, and never falls back to everything.
"""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="registry",
    events=("remit.features.registry.events",),
    requires=("discovery", "skills"),
    setup="remit.features.registry.service",
)
