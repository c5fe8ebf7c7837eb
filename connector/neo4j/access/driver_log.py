"""The driver's warnings in plain words.

Its lines about retries and broken connections quote addresses, messages of the server and, in some,
values. Each is rewritten where it is logged: to one sentence, with the seconds until the next try.
"""

from __future__ import annotations

import logging

LOGGERS = ("neo4j.session", "neo4j.pool", "neo4j.io")
RETRIED = "will be retried in"
RETRIED_AT_ONCE = "will be retried"


class PlainWords(logging.Filter):
    """Rewrite a record of the driver from WARNING on; lower ones pass as they are."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is logged: it always is."""
        if record.levelno >= logging.WARNING:
            record.msg, record.args = describe_record(record), ()
            record.exc_info = record.exc_text = None
        return True


def describe_record(record: logging.LogRecord) -> str:
    """Return what a person needs of a record of the driver."""
    raw = str(record.msg)
    if RETRIED in raw and isinstance(record.args, tuple) and record.args:
        return f"Neo4j gave no answer; asked again in {float(str(record.args[0])):.1f} s"
    if RETRIED_AT_ONCE in raw:
        return "Neo4j gave no answer; asked again"
    return "the connection to Neo4j broke"


def use_plain_words() -> None:
    """Rewrite the driver's warnings from here on; calling it again changes nothing."""
    logging.getLogger("neo4j").setLevel(logging.WARNING)  # its DEBUG lines print parameters
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(known, PlainWords) for known in logger.filters):
            logger.addFilter(PlainWords())
