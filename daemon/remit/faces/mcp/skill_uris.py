"""Addresses of skills and their files: `skill://NAME/PATH`, where NAME is the id without its kind.

A name that follows the standard of skills stands in its address as it is.
"""

from mimetypes import MimeTypes
from urllib.parse import quote, unquote

import msgspec

SCHEME = "skill://"
SKILL_FILE = "SKILL.md"
DIRECTORY = "inode/directory"
TEMPLATE = "skill://{skill}/{+path}"
_KIND = "skill:"
_TYPES = MimeTypes()  # the same on every machine: files of the system are not asked
for _ending, _type in {
    ".md": "text/markdown",
    ".toml": "application/toml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}.items():
    _TYPES.add_type(_type, _ending)


class Address(msgspec.Struct, frozen=True):
    """A skill and a path in it; the empty path is its folder."""

    id: str
    path: str = ""

    @property
    def name(self) -> str:
        """The id without its kind."""
        return self.id.removeprefix(_KIND)

    def uri(self) -> str:
        """The address as text; a folder has no slash at its end."""
        parts = [self.name, *filter(None, self.path.split("/"))]
        return SCHEME + "/".join(quote(part, safe="") for part in parts)


def id_of(name: str) -> str:
    """The id of a skill from its name."""
    return f"{_KIND}{name}"


def parse(uri: str) -> Address | None:
    """The address that a text means; None when it is none of a skill."""
    if not uri.startswith(SCHEME):
        return None
    try:
        parts = [unquote(part, errors="strict") for part in uri.removeprefix(SCHEME).split("/")]
    except UnicodeDecodeError:
        return None
    if any(part in ("", ".", "..") or "/" in part for part in parts):
        return None
    return Address(id_of(parts[0]), "/".join(parts[1:]))


def mime_type(path: str) -> str | None:
    """The type by the ending of a name; None when it says nothing."""
    return _TYPES.guess_type(path)[0]
