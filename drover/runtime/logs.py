"""How a worker logs: one line per fact on standard error, libraries' warnings among them."""

import logging
import sys

import structlog

# Faust's consumer thread says this while it waits for its turn to join the group: every time, and for no fault.
_NOISE = ("Thread keepalive is not responding", "Missing sensor state for rebalance")


def configure_logging() -> None:
    """Send structlog and the standard library's logging through one renderer; in colour only on a terminal."""
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
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), sort_keys=False),
            ],
        )
    )
    handler.addFilter(_is_worth_saying)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("drover").setLevel(logging.INFO)
    # The driver of a managed cluster reports every failed call itself; its client would say it four times a second.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)


def _is_worth_saying(record: logging.LogRecord) -> bool:
    return not any(noise in record.getMessage() for noise in _NOISE)
