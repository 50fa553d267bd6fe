"""Every error a user can meet, in one place: what a client raises, and what ends a transaction from inside.

Nothing here carries a traceback of the engine or a reference to user objects: errors are kept and sent as (code, type,
message) only, so that a million aborted transactions cost no memory.
"""

from __future__ import annotations

from typing import Final

from styx.values.steady_text import message_of

MESSAGE_CHARS_MAX = 4096
TYPE_CHARS_MAX = 128
"""Of the name of an exception's class, which is part of a reply and so of a record in the log."""
MAY_HAVE_RUN: Final = (
    "; the request may have committed, or may still commit: repeat it only with the same idempotency key"
)
"""How the message of each `OutcomeUnknown` ends."""


class StyxError(Exception):
    """Base of every error this library raises."""


class ConfigurationError(StyxError):
    """An app, operator or option is declared wrongly; raised where it is declared."""


class TransactionAborted(StyxError):
    """The transaction ended in an abort: its function raised. State is untouched.

    `type` is the name of the exception's class, `message` its text, `transaction` the place in the serial order.
    """

    def __init__(self, type: str, message: str) -> None:
        super().__init__(f"{type}: {message}" if message else type)
        self.type = type
        self.message = message


class BadRecord(StyxError):
    """A record of a foreign topic can become no call: it cannot be decoded, or the app's functions refuse it. It is set
    aside among the dead calls of its `Ingest`, with this reason.
    """


class RequestRejected(StyxError):
    """The request could not be run at all; nothing happened.

    `code` is one of `unknown_operator`, `unknown_function`, `bad_arguments`, `bad_request`, `too_large`,
    `overloaded`, `unavailable`; of reads outside the log also `snapshot_too_old`, `too_stale`,
    `unknown_epoch`, `not_read_only`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class SnapshotTooOld(RequestRejected):
    """A read outside the log asked for the end of an epoch that is not kept any more, and read nothing. Read at a later
    epoch, or without `at`; `Limits.versions_max` and `Limits.version_bytes_max` say how much is kept.
    """

    def __init__(self, message: str) -> None:
        super().__init__("snapshot_too_old", message)


class NotSent(RequestRejected, ConnectionError):
    """Nobody who could run the request has it: nothing was run, and it may be sent again. `code` is `unavailable`."""

    def __init__(self, message: str) -> None:
        super().__init__("unavailable", message)


class OutcomeUnknown(StyxError, ConnectionError):
    """The request was on its way when `reason` came between: it may have committed, or still may.

    Whoever repeats it without the idempotency key that it had may run it twice; no client does that by itself.
    `request_id` is the request's, empty where nobody knows it. A `TimeoutError` means the same, after a time.
    """

    def __init__(self, reason: str, request_id: str = "") -> None:
        self.reason = reason.removesuffix(MAY_HAVE_RUN)
        self.request_id = request_id
        super().__init__(self.reason + MAY_HAVE_RUN)


class LoadFailed(StyxError):
    """A bulk load ended before its end. The pairs of the chunks that were acknowledged are loaded and stay.

    `loaded` pairs are loaded for certain; chunks whose outcome is unknown are not counted. `code`, `type` and `message`
    say why, as those of a reply do. `key` is the pair's that failed and `index` its position in what was given, from 0;
    both are None if it was none in particular.
    """

    def __init__(
        self, code: str, type: str, message: str, loaded: int, *, key: object = None, index: int | None = None
    ) -> None:
        place = "" if index is None else f"pair {index}: "
        super().__init__(f"{place}{type}: {message} ({loaded} pairs are loaded for certain)")
        self.code = code
        self.type = type
        self.message = message
        self.loaded = loaded
        self.key = key
        self.index = index


class EventsCut(StyxError, ConnectionError):
    """A reader of events was cut off: what it was given stands, and it goes on behind the last cursor that it has."""


class EventsReleased(StyxError):
    """Events behind a reader's cursor are no longer in the log, so that it would miss some. The message names them."""


class EventUnreadable(StyxError):
    """An event in the log does not fit the type of the `Event` that it was asked for by. `cursor` is its place: a
    reader may go on behind it, or ask by the event's name, which gives plain data.
    """

    def __init__(self, message: str, cursor: str) -> None:
        super().__init__(message)
        self.cursor = cursor


class EngineFailed(StyxError):
    """The engine stopped: its log or store failed, or its data is damaged. The message says what to do."""


class InTransactionError(StyxError):
    """Base of the errors the engine itself raises inside a user's function; each ends its transaction."""

    code = "aborted"


class UnknownOperator(InTransactionError):
    """A call names an operator that the app does not have."""

    code = "unknown_operator"


class UnknownFunction(InTransactionError):
    """A call names a function that its operator does not have."""

    code = "unknown_function"


class BadArguments(InTransactionError):
    """Arguments do not fit the function's signature."""

    code = "bad_arguments"


class BadKey(BadArguments):
    """A key is not of its operator's key type."""


class KeyExists(InTransactionError):
    """A bulk load without `replace` met a key that has a state, or has the same key twice."""


class EditConflict(InTransactionError):
    """An edit found another value than the one that it was made of: somebody has changed it meanwhile."""


class UnknownEntity(InTransactionError):
    """A read met an entity that has no state."""


class WrongPartition(BadKey):
    """A request stands in another partition of the requests stream than its key's, which ends the message."""


class RowExists(InTransactionError):
    """`insert` met a row with the same primary key."""


class NoSuchRow(InTransactionError):
    """`update` found no row with the primary key."""


class UniqueViolation(InTransactionError):
    """A row has the same values in the columns of a unique index as another row of its entity."""


class CheckViolation(InTransactionError):
    """A row does not meet a check of its table."""


class ReferenceViolation(InTransactionError):
    """A row refers to one that does not exist, or one that others refer to with `on_delete="restrict"` was deleted."""


class MissingIndex(InTransactionError):
    """No index of the table serves the conditions of a query, and it does not say `scan=True`."""


class BadQuery(InTransactionError):
    """A query or statement does not fit its table: a column that the table does not have, a value of another type."""


class RowLimitExceeded(InTransactionError):
    """A query read more than `Limits.rows_per_query_max` rows."""


class ReadOnlyViolation(InTransactionError):
    """A function that was registered with `read_only=True` tried to write, to call a function that may, or to make an
    external call.
    """


class OutsideGraph(InTransactionError):
    """A function of a transaction graph called one to which the graph has no edge from it."""


class OtherPartition(InTransactionError):
    """A partition function called an entity, or named rows of one, that is not of its own partition."""


class UnsupportedValue(InTransactionError):
    """A value cannot be stored or sent without changing its type; declare a `state_type`. `path` is where in it."""

    path = ""


class ValueTooLarge(InTransactionError):
    """A state value, an argument list or a result is over its size limit."""

    code = "too_large"


class CallDepthExceeded(InTransactionError):
    """A call chain is deeper than `Limits.call_depth_max`: most likely an endless recursion."""


class CallLimitExceeded(InTransactionError):
    """A transaction made more calls than `Limits.invocations_max`, or their arguments and results are larger than
    `Limits.transaction_bytes_max`.
    """


class OperationLimitExceeded(InTransactionError):
    """One invocation used its context more than `Limits.operations_max` times: most likely an endless loop."""


class FunctionTooLong(InTransactionError):
    """A function ran longer than `Limits.function_seconds_max` without returning to the engine, which interrupted it.

    The outcome is recorded: no replay runs the transaction again. `lines` are where it stood: (file, line, function),
    outermost first.
    """

    lines: tuple[tuple[str, int, str], ...] = ()


class RequestSetAside(InTransactionError):
    """The engine failed at the request whenever it met it, and an operator has set it aside."""

    code = "bad_request"


class NondeterministicFunction(InTransactionError):
    """A function awaited something other than its context: time, I/O and tasks differ between executions.

    `lines` are where it waits: (file, line, function), outermost first.
    """

    lines: tuple[tuple[str, int, str], ...] = ()


class ForgottenAwait(InTransactionError):
    """A function returned and had not awaited a call, or a read: the call was never made."""


class ContextClosed(InTransactionError):
    """A context was used after its function had ended."""


def describe(error: BaseException) -> tuple[str, str]:
    """The (type name, message) a reply carries for `error`; never raises, whatever the exception does."""
    try:
        # A metaclass can make of the name what it likes; `str(…)`, because a subclass of str can do the same.
        name = str.__str__(type(error).__name__)
        name.encode()
    except BaseException:  # noqa: BLE001 - as below
        name = "<unnamed exception>"
    try:
        # str(KeyError("no account")) is a repr with quotes; its argument is what the author wrote.
        message = str.__str__(message_of(error, MESSAGE_CHARS_MAX))
        message.encode()
    except BaseException:  # noqa: BLE001 - the exception's own code: it can raise anything
        message = "<the exception's message could not be printed>"
    return _cut(name, TYPE_CHARS_MAX), _cut(message, MESSAGE_CHARS_MAX)


def _cut(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else text[:chars_max] + "…"


def code_of(error: BaseException) -> str:
    """The reply code for an error that a function raised: `aborted` for everything a user's code raises."""
    return error.code if isinstance(error, InTransactionError) else "aborted"
