"""How the daemon logs: facts with fields, pretty on a terminal and JSON elsewhere, on stderr."""

import logging
import sys

import structlog

from remit.config.settings import Settings


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
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
