"""Errors of the log in Kafka, and the meaning of brokers' error codes.

An unreachable broker is a `ConnectionError` or `TimeoutError`.
"""

from __future__ import annotations

from typing import Final

from aiokafka import errors as kafka_errors

from styx.errors import EngineFailed, StyxError


class Fenced(EngineFailed):
    """Another process took over the appender's transactional id; Kafka refuses the appender's records for good."""


class RecordTooLarge(StyxError):
    """A record is over the size limit. Nothing of its append was sent, and the appender goes on."""


class AppendFailed(EngineFailed):
    """Records were not appended, or their fate is unknown. The appender cannot go on."""


NO_ERROR: Final = 0
OFFSET_OUT_OF_RANGE: Final = 1
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
TOPIC_ALREADY_EXISTS: Final = 36
SETTING_REFUSED: Final = frozenset({40, 44})
"""INVALID_CONFIG, POLICY_VIOLATION: a topic cannot have a setting, or nobody may choose it there."""
CONCURRENT_TRANSACTIONS: Final = 51
"""The end of the last transaction is being written."""

# INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED: the transaction that the
# appender believes to be open was ended by another process, or by the broker after its timeout.
_FENCED: Final = frozenset({47, 48, 49, 90})
# Codes of a coordinator that is not ready yet, besides those that aiokafka calls retriable.
_PASSING: Final = frozenset({14, 15, 16, CONCURRENT_TRANSACTIONS, 55})


def passes(code: int) -> bool:
    """Whether a repetition can succeed: a leader moves, a coordinator loads, a replica is behind."""
    return code in _PASSING or bool(kafka_errors.for_code(code).retriable)


def fences(code: int) -> bool:
    """Whether the broker refuses this producer for good."""
    return code in _FENCED


def name_of(code: int) -> str:
    """The code's name and number, for texts."""
    return f"{kafka_errors.for_code(code).__name__} (error {code})"
