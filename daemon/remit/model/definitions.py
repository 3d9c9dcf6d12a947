"""Everything operators wrote, parsed but not yet checked against each other."""

import msgspec

from remit.model.capability import Capability
from remit.model.composition import Composition
from remit.model.made_capability import MadeCapability
from remit.model.place import Problem


class Definitions(msgspec.Struct, frozen=True):
    """The capabilities and compositions of one set of files, and what was wrong with the files."""

    capabilities: tuple[Capability, ...] = ()
    compositions: tuple[Composition, ...] = ()
    problems: tuple[Problem, ...] = ()
    made: tuple[MadeCapability, ...] = ()
    """What was made at run time, beside the files."""

    @property
    def is_unread(self) -> bool:
        """Tell whether mistakes kept every capability from being read."""
        return not self.capabilities and any(problem.is_error for problem in self.problems)
