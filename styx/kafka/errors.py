"""Errors of the log in Kafka, other than an unreachable broker, which is a `ConnectionError` or `TimeoutError`.

Also the error codes of brokers that are temporary.
"""

from __future__ import annotations

from typing import Final

from aiokafka import errors as kafka_errors

from styx.errors import EngineFailed, StyxError


class Fenced(EngineFailed):
    """Somebody else took over this appender's transactional id: it may append nothing any more."""


class RecordTooLarge(StyxError):
    """A record is over the size limit. Nothing of its append was sent, and the appender goes on."""


class AppendFailed(EngineFailed):
    """Records could not be appended, or it is not known whether they were. The appender is of no use any more."""


NO_ERROR: Final = 0
OFFSET_OUT_OF_RANGE: Final = 1
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
TOPIC_ALREADY_EXISTS: Final = 36
CONCURRENT_TRANSACTIONS: Final = 51
"""The end of the last transaction is still being written."""

# INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED: the transaction that the
# appender believes to be open was ended by somebody else, or by the broker after its timeout.
_FENCED: Final = frozenset({47, 48, 49, 90})
# What a coordinator answers until it is ready again, beside what aiokafka calls retriable.
_PASSING: Final = frozenset({14, 15, 16, CONCURRENT_TRANSACTIONS, 55})


def passes(code: int) -> bool:
    """Whether asking again can help: a leader moves, a coordinator loads, a replica is behind."""
    return code in _PASSING or bool(kafka_errors.for_code(code).retriable)


def fences(code: int) -> bool:
    """Whether the broker refuses this producer for good."""
    return code in _FENCED


def name_of(code: int) -> str:
    """For messages."""
    return f"{kafka_errors.for_code(code).__name__} (error {code})"
