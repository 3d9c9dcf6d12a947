"""Files of a session: never files of the machine, never those of another session."""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="files",
    events=("remit.features.files.events",),
    setup="remit.features.files.tree",
)
