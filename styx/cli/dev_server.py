"""The output of `styx dev`: the address, the recovered state, the requests, and the end."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from styx.cli.check.process import FINISH_SECONDS_MAX, checked
from styx.cli.example_call import example
from styx.cli.request_lines import RequestLines
from styx.cli.serving import ServingOptions, Start, run_loop, serve_embedded
from styx.cli.source_files import Stamps
from styx.model.app import App
from styx.model.function_spec import FunctionSpec
from styx.reports.json_lines import json_wanted
from styx.reports.log_setup import replaying_is, set_up_logging
from styx.reports.warnings_shown import warnings_shown
from styx.watchdog import held_interpreter

if TYPE_CHECKING:
    from styx.embedded_engine.engine import EmbeddedEngine

_ANY_ADDRESS = ("0.0.0.0", "::", "")
_log = logging.getLogger("styx.dev")


class DevOptions(NamedTuple):
    """The output that a developer wants. `requests`: a line for each; `all_errors`: also errors that the app means.

    `check` is the MODULE:APP on which transactions are run again, None for no check; `files` are the stamps of the
    app's files, and `check_seconds` is the time that an end gives to transactions that are not checked yet.
    """

    requests: bool = True
    all_errors: bool = False
    check: str | None = None
    files: Stamps | None = None
    check_seconds: float = FINISH_SECONDS_MAX


def run_dev_server(app: App, options: ServingOptions, shown: DevOptions) -> None:
    """Serves the app until the process is told to stop. Raises the error that ends it otherwise."""
    set_up_terminal()

    def on_started(url: str, start: Start) -> None:
        say(*opening_lines(app, url, options, start))

    def on_stopping() -> None:
        say("Stopping: storing a snapshot …")

    epoch = run_loop(dev_serving(app, options, shown, on_started, on_stopping))
    say(closing_line(epoch, options.data_dir))


def set_up_terminal() -> None:
    """Sets up log lines in the form for a terminal."""
    set_up_logging("dev", terminal=True)
    held_interpreter.write_to(sys.stderr)


async def dev_serving(
    app: App,
    options: ServingOptions,
    shown: DevOptions,
    on_started: Callable[[str, Start], None],
    on_stopping: Callable[[], None],
    stop: asyncio.Event | None = None,
    listener: socket.socket | None = None,
) -> int | None:
    """As `serve_embedded`, with the output that a developer wants."""
    begin_check: list[Callable[[], None]] = []

    def started(url: str, start: Start) -> None:
        for begin in begin_check:
            begin()
        on_started(url, start)

    return await serve_embedded(
        app,
        options,
        on_started=started,
        on_stopping=on_stopping,
        stop=stop,
        listener=listener,
        around=RequestLines if shown.requests else None,
        beside=lambda engine: _watched(engine, shown, begin_check),
    )


@contextmanager
def _watched(engine: EmbeddedEngine, shown: DevOptions, begin_check: list[Callable[[], None]]) -> Iterator[None]:
    """Meanwhile the engine's reports have the output that a developer wants."""
    notes = engine.reports.notes
    notes.all_aborts = shown.all_errors
    engine.reports.show_all()
    replaying_is(lambda: notes.replaying)
    with ExitStack() as beside:
        beside.enter_context(warnings_shown(engine.reports, origins=True))
        if shown.check is not None:
            checking = checked(engine, shown.check, shown.files or {}, shown.check_seconds)
            begin_check.append(beside.enter_context(checking))
        yield


def opening_lines(app: App, url: str, options: ServingOptions, start: Start) -> list[str]:
    """The lines of the start: the app, its URL and functions, the data, a command to try."""
    lines = [f"Serving {app.name} at {url}"]
    if options.host in _ANY_ADDRESS:
        lines[0] += " and at every other address of this machine"
    lines += function_lines(app)
    lines += [f"Docs  {url}/docs", f"Data  {options.data_dir} ({_recovered(start)})"]
    lines += [f"Code  {line}" for line in code_lines(start)]
    words = example(app, url, guarded=options.front is not None and options.front.access.enabled)
    if words:
        lines.append(f"Try   {words}")
    lines.append("Ctrl-C stops it: requests in flight are finished and a snapshot is stored.")
    return lines


def code_lines(start: Start) -> list[str]:
    """Lines about the stored state and the replay, if the code has changed since the last start."""
    if not start.changed:
        return []
    lines = ["changed since the last start"]
    if start.replayed:
        code = "the code that had run them" if start.recorded_code else "the code as it is now"
        lines[0] += f"; {start.replayed} epochs of the log were run again on {code}"
    return [*lines, *start.notes]


def function_lines(app: App) -> list[str]:
    """A line for each function: its route and parameters."""
    functions = [spec for operator in app.operators.values() for spec in operator.functions.values()]
    routes = [f"/v1/{spec.operator}/{{key}}/{spec.name}" for spec in functions]
    width = max(map(len, routes), default=0)
    return [f"  POST {route:<{width}}  ({_parameters(spec)})" for route, spec in zip(routes, functions, strict=True)]


def closing_line(epoch: int | None, data_dir: Path) -> str:
    """The last line: the stored snapshot."""
    if epoch is None:
        return f"Stopped; there was nothing to store in {data_dir}."
    return f"Stopped; the snapshot at epoch {epoch} is stored in {data_dir}."


def _recovered(start: Start) -> str:
    if start.epoch is None:
        return "new"
    source = "the log" if start.snapshot_epoch is None else f"the snapshot at epoch {start.snapshot_epoch}"
    if start.snapshot_epoch is not None and start.replayed:
        source += f" and {start.replayed} epochs of the log"
    return f"recovered up to epoch {start.epoch} from {source} in {start.seconds:.2f} s"


def _parameters(spec: FunctionSpec) -> str:
    words = ", ".join(map(str, spec.signature.parameters))
    return words.replace("typing.", "").replace("msgspec.Meta(", "Meta(")


def say(*lines: str) -> None:
    """Prints lines at once. With STYX_LOG_FORMAT=json they are log records instead."""
    if json_wanted():
        for line in lines:
            _log.info("%s", line)
    else:
        print(*lines, sep="\n", flush=True)
