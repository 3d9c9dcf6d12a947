"""How the daemon logs: facts with fields, pretty on a terminal and JSON elsewhere, on stderr."""

import logging
import os
import sys
from typing import TextIO, cast

import structlog

from remit.config.settings.table import Settings


class Lines:
    """A stream whose failures harm nobody: a full disk or a closed pipe costs lines, no request.

    Past the buffer of the stream: what is stuck in there would make the process end with an error.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.dropped = 0

    def write(self, text: str) -> int:
        """Write a line, or count it as dropped."""
        try:
            os.write(self._stream.fileno(), text.encode(errors="backslashreplace"))
        except OSError:
            self.dropped += 1
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


def configure_logs(settings: Settings) -> None:
    """Set up structlog once, for the whole process."""
    pretty = settings.log_format == "pretty" or (
        settings.log_format == "auto" and sys.stderr.isatty()
    )
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if pretty else structlog.processors.JSONRenderer()
    )
    tracebacks: list[structlog.typing.Processor] = (
        [] if pretty else [structlog.processors.format_exc_info]
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *tracebacks,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[settings.log_level.upper()]
        ),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", Lines(sys.stderr))),
        cache_logger_on_first_use=True,
    )
