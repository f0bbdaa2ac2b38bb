"""Structured logs: one JSON object a line on standard error, with the ids bound to the task."""

import logging
import sys

import structlog

Logger = structlog.stdlib.BoundLogger


def get_logger(room: str) -> Logger:
    """Logger of a room; bind ids with `logger.bind(document_id=…, page=…)`."""
    logger: Logger = structlog.stdlib.get_logger(room)
    return logger


def configure_logging(level: str) -> None:
    """Send the program's own and the libraries' log lines through one JSON formatter."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
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
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for noisy in ("httpx", "httpcore", "asyncio", "alembic", "python_multipart"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, logging.getLevelName(level.upper())))
