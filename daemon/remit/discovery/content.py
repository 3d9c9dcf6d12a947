"""The full text of a descriptor, read when somebody wants it.

The path is checked again at every reading: between the scan and now a link may have been put there.
"""

import os
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from remit.config.frontmatter import MAX_MARKDOWN, split_frontmatter
from remit.config.inside import NotInsideError, open_inside
from remit.config.nodes import read_text
from remit.model.descriptor import SourceRef
from remit.model.place import DefinitionError, Place, Problem

_KEPT = 64
"""Texts that are kept decoded; the one that was asked for longest ago goes first."""

Version = tuple[str, int, int, int, int, int]
"""A path, and what its file was when it was opened."""


class ContentReader:
    """Reads texts; may be asked from several threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Version, str] = OrderedDict()
        self._lock = Lock()

    def read(self, source: SourceRef) -> str:
        """The text without its frontmatter; empty when the source has none.

        Raises:
            DefinitionError: the file is gone, lies elsewhere, is too large or is not text.
        """
        if not source.content_file:
            return ""
        file = str(Path(source.root, source.content_file))
        try:
            with open_inside(Path(source.root), source.content_file) as stream:
                key = (file, *version_of(os.fstat(stream.fileno())))
                known = self._known(key)
                return self._remember(key, _body(stream, file)) if known is None else known
        except FileNotFoundError:
            problem = Problem(Place(file), "unreadable", "the file is gone")
            raise DefinitionError([problem]) from None
        except (NotInsideError, OSError) as error:
            raise DefinitionError([Problem(Place(file), "unreadable", str(error))]) from error

    def _known(self, key: Version) -> str | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _remember(self, key: Version, text: str) -> str:
        with self._lock:
            self._kept[key] = text
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return text


def version_of(status: os.stat_result) -> tuple[int, int, int, int, int]:
    """What changes when a file does; the time of writing alone can be set to anything."""
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (status.st_dev, status.st_ino, status.st_size, *times)


def _body(stream: BinaryIO, file: str) -> str:
    raw = stream.read(MAX_MARKDOWN + 1)
    if len(raw) > MAX_MARKDOWN:
        message = f"the file has more than {MAX_MARKDOWN:,} bytes"
        raise DefinitionError([Problem(Place(file), "too_large", message)])
    text, problems = read_text(raw, file)
    if problems:
        raise DefinitionError(problems)
    return split_frontmatter(text)[1].strip()
