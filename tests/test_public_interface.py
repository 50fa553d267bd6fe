"""What `import styx` gives and what it costs: names that users rely on, and nothing heavy behind them."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import styx

NAMES = {
    "App",
    "Check",
    "ConfigurationError",
    "Context",
    "DeadCall",
    "DeadCallsPage",
    "EngineFailed",
    "Event",
    "EventSeen",
    "Graph",
    "Index",
    "Ingest",
    "IngestRecord",
    "Inlet",
    "KeptEvent",
    "KeyExists",
    "Limits",
    "ListEntry",
    "ListPage",
    "LoadFailed",
    "LoadReport",
    "NotSent",
    "Operator",
    "OutcomeUnknown",
    "Page",
    "PartitionContext",
    "Ref",
    "Reply",
    "ReplyError",
    "RequestRejected",
    "Retry",
    "Rows",
    "SnapshotTooOld",
    "StyxError",
    "Table",
    "TransactionAborted",
    "Tumbling",
    "__version__",
    "above",
    "asgi",
    "at_least",
    "at_most",
    "below",
    "between",
    "connect",
    "connect_sync",
    "embedded",
    "embedded_sync",
    "prefix",
}
HEAVY = {"aiohttp", "asyncio", "cyclopts", "multiprocessing", "rich", "sqlite3", "ssl", "starlette", "uvloop"}


def test_the_public_names_are_these() -> None:
    assert set(styx.__all__) == NAMES
    assert len(styx.__all__) == len(NAMES)
    for name in NAMES:
        assert getattr(styx, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'styx' has no attribute 'embeded'"):
        _ = styx.embeded  # type: ignore[attr-defined]


def test_what_a_function_may_use() -> None:
    public = {name for name in dir(styx.Context) if not name.startswith("_")}
    assert public == {
        *(
            "after",
            "after_commit",
            "at",
            "call",
            "call_all",
            "call_all_async",
            "call_async",
            "call_external",
            "cancel",
            "delete",
            "emit",
            "find",
            "get",
            "group",
            "key",
            "log",
            "now",
            "operator",
            "partition",
        ),
        *("put", "random", "rows", "sequence", "state", "transaction_id", "unique_id", "uuid"),
    }


def test_what_a_reply_has() -> None:
    assert styx.Reply._fields == ("result", "error", "tid", "epoch", "phase", "request_id")
    assert styx.ReplyError._fields == ("type", "message", "code")


def test_how_an_operator_is_declared() -> None:
    parameters = inspect.signature(styx.Operator).parameters
    assert list(parameters) == ["name", "n_partitions", "key_type", "state_type", "partition_key", "migrate", "ttl"]
    assert [p.kind for p in parameters.values()][2:] == [inspect.Parameter.KEYWORD_ONLY] * 5


@pytest.mark.slow
def test_importing_it_imports_nothing_heavy() -> None:
    code = f"import sys, styx; print(*sorted(sys.modules.keys() & {HEAVY!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
