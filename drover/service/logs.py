"""Logging of long-running processes: one line per fact on standard error, including libraries' warnings.

The format is text on a terminal and JSON elsewhere, unless a setting names it. Control characters are escaped.
"""

import logging
import sys

import structlog

from drover.events.bounds import visible
from drover.settings.settings import Settings

FORMATS = ("auto", "json", "text")
# Harmless messages that Faust's consumer thread logs each time while it waits to join the group.
_NOISE = ("Thread keepalive is not responding", "Missing sensor state for rebalance")


def configure_logging(log_format: str = "auto") -> None:
    """Send structlog and the standard library's logging through one renderer; in colour only on a terminal.

    `log_format` is one of `FORMATS`.
    """
    # A service manager may have closed standard error: then nobody is told anything, and the process runs all the same.
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    is_json = log_format == "json" or (log_format == "auto" and not is_terminal)
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.NullHandler() if sys.stderr is None else logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *([_event_first, structlog.processors.JSONRenderer()] if is_json else _text(colors=is_terminal)),
            ],
        )
    )
    handler.addFilter(_is_worth_saying)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("drover").setLevel(logging.INFO)
    # The driver of a managed cluster reports every failed call itself; its client would say it four times a second.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)


def announce_plaintext(settings: Settings) -> None:
    """Log once which connections are not encrypted."""
    if settings.plaintext:
        structlog.get_logger(__name__).warning(
            "not encrypted: anybody on the network can read and change it", connections=list(settings.plaintext)
        )


def _text(*, colors: bool) -> list[structlog.typing.Processor]:
    return [_neutral, structlog.dev.ConsoleRenderer(colors=colors, sort_keys=False)]


def _neutral(_logger: object, _name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Escape control characters, except the line breaks of a traceback."""
    return {key: _said(key, value) for key, value in event.items()}


def _said(key: str, value: object) -> object:
    if not isinstance(value, str):
        seen = repr(value)
        return value if visible(seen) == seen else visible(seen)
    return visible(value) if key == "exception" else visible(value).replace("\n", "\\n")


def _event_first(_logger: object, _name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Put the most important fields first; JSON itself escapes characters that are not ASCII."""
    first = {key: event.pop(key) for key in ("timestamp", "level", "event") if key in event}
    return {**first, **event}


def _is_worth_saying(record: logging.LogRecord) -> bool:
    # aiohttp logs a traceback for each request that is not HTTP, with which any client could fill the log.
    is_bad_request = record.exc_info is not None and type(record.exc_info[1]).__module__ == "aiohttp.http_exceptions"
    return not is_bad_request and not any(noise in record.getMessage() for noise in _NOISE)
