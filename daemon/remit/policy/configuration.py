"""The configuration of capabilities in a profile: what each was given, and what each needs.

What a capability is given stands in a file or in a request; that its schema is content is checked
there and nowhere later. A capability without a schema takes no configuration.
"""

from collections.abc import Iterator

import msgspec

from remit.model.composition import Flag
from remit.model.place import REQUEST, Problem, Severity
from remit.model.schema import config_mistakes, shown
from remit.policy.catalogue import Catalogue
from remit.policy.layers import Layer


def written_problems(catalogue: Catalogue, flag: Flag) -> Iterator[Problem]:
    """What is wrong with a configuration as it was written, each at its own place."""
    definition = catalogue.capabilities.get(catalogue.names.get(flag.capability, ""))
    if definition is None or not flag.config:
        return
    hint = f"its schema is shown by: remit gives {flag.capability} --json"
    # An edit of the files must not fail because of what somebody made at run time.
    severity: Severity = "warning" if definition.id in catalogue.made else "error"
    if definition.config_schema is None:
        message = f"{flag.capability!r} has no config_schema, so it takes no configuration"
        hint = "leave it out, or give the capability a config_schema"
        place = flag.places.get((), flag.place)
        yield Problem(place, "invalid_config", message, hint, severity)
        return
    for mistake in config_mistakes(definition.config_schema, flag.config):
        path = mistake.path
        while path and path not in flag.places:
            path = path[:-1]
        message = f"the configuration of {flag.capability!r} does not fit: {mistake.message}"
        place = flag.places.get(path, flag.place)
        message = f"{message} ({shown(mistake.path)})"
        yield Problem(place, "invalid_config", message, hint, severity)


class Missing(msgspec.Struct, frozen=True):
    """A capability that is held without the configuration that its schema needs."""

    flag: Flag
    """What brings it."""
    capability: str
    needed: str
    brought: bool = False
    """Whether the flag names something else, which requires it."""

    @property
    def problem(self) -> Problem:
        """The same as an error of the files, or of a request."""
        name = self.capability
        brings = f", which {self.flag.capability!r} requires," if self.brought else ""
        message = f"{name!r}{brings} needs a configuration: {self.needed}"
        hint = f"write {{ref: {name}, config: {{…}}}}; its schema: remit gives {name} --json"
        return Problem(self.flag.place, "missing_config", message, hint)


def missing_configs(catalogue: Catalogue, layer: Layer) -> list[Missing]:
    """What a profile switches on, or brings along, without what its schema needs."""
    found = []
    for name, flag in layer.flags.items():
        if not flag.on or (name in catalogue.made and flag.place != REQUEST):
            continue  # an edit of the files must not fail because of what somebody made
        for member in catalogue.closures.get(name, ()):
            said = layer.flags.get(member)
            is_said = said is not None and said.on
            if member != name and is_said:
                continue  # it speaks for itself
            config = said.config if said is not None and is_said else None
            schema = catalogue.capabilities[member].config_schema
            mistakes = () if config or schema is None else config_mistakes(schema, {})
            if mistakes:
                found.append(Missing(flag, member, mistakes[0].message, member != name))
    return found
