"""JSON Schemas of the files that people write, for editors."""

from collections.abc import Callable
from typing import Any

from remit.config.definitions.capabilities import CAPABILITY_FILE
from remit.config.definitions.compositions import composition_kind
from remit.features.cards.card import CARD
from remit.features.skills.manifest_file import MANIFEST
from remit.features.upstreams.file import UPSTREAM_FILE

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def capability_schema() -> dict[str, Any]:
    """The schema of capabilities.yaml."""
    return {"$schema": _DIALECT, "title": "capabilities.yaml"} | CAPABILITY_FILE.schema()


def composition_schema() -> dict[str, Any]:
    """The schema of a composition."""
    kind = composition_kind(lambda _component, _source, _report: None)
    return {"$schema": _DIALECT, "title": "a remit composition"} | kind.schema()


def manifest_schema() -> dict[str, Any]:
    """The schema of CAPABILITY.yaml."""
    return {"$schema": _DIALECT, "title": "CAPABILITY.yaml"} | MANIFEST.schema()


def card_schema() -> dict[str, Any]:
    """The schema of a card's frontmatter."""
    return {"$schema": _DIALECT, "title": "the frontmatter of a card"} | CARD.schema()


def upstream_schema() -> dict[str, Any]:
    """The schema of upstreams.yaml."""
    return {"$schema": _DIALECT, "title": "upstreams.yaml"} | UPSTREAM_FILE.schema()


SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "capability": capability_schema,
    "composition": composition_schema,
    "manifest": manifest_schema,
    "card": card_schema,
    "upstreams": upstream_schema,
}
