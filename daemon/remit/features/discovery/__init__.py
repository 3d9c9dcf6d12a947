"""Finding the right tools, skills, extensions and channels for one turn, inside a token budget.

Promises:
- Nothing here decides what a caller may use. Every question comes with a view: the descriptors that
  the caller's grant allows. Scores, counts, suggestions and texts are computed from the view alone.
- A descriptor that cannot be read is left out and reported; the rest goes on.
- No answer is over its token budget, by the counter that is configured.
- Without vectors the ranking is by words alone; without anything to find there is still the map.
"""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="discovery",
    events=("remit.features.discovery.events",),
    setup="remit.features.discovery.setup",
)
