"""One version of the code, in a process of its own: it imports the app, serves it on the inherited socket, and releases
data and socket for the next version. If the next version cannot serve, this one serves again.

Its watcher orders each step. A version whose watcher is gone ends in order.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
import traceback
from pathlib import Path

from styx.cli.app_target import load_app
from styx.cli.dev_server import DevOptions, closing_line, dev_serving, opening_lines, say, set_up_terminal
from styx.cli.exit_codes import CommandFailed
from styx.cli.reload.control import News, Order, Orders
from styx.cli.serving import ServingOptions, Start, run_loop
from styx.cli.source_files import imported_files
from styx.errors import StyxError
from styx.model.app import App
from styx.model.user_frames import Frame, UserFrames


def run_version(target: str, options: ServingOptions, shown: DevOptions, sockets: str) -> None:
    """Runs a version's process; `sockets` is the value of `control.VARIABLE`."""
    set_up_terminal()
    # Python matches compiled files to sources by second and size: two edits within a second can look the same.
    sys.dont_write_bytecode = True
    control, listening = (socket.socket(fileno=int(number)) for number in sockets.split(","))
    orders = Orders(control)
    app: App | None = None
    while (order := orders.wait()).do != "end":
        if order.do == "import":
            app = _imported(target, orders)
            # Requests wait for the end of a version, so it drops the transactions that are not checked yet.
            shown = shown._replace(files=imported_files(), check_seconds=0.0)
        elif order.do == "serve" and app is not None and _serves(app, options, shown, listening, orders, order.first):
            return


def _imported(target: str, orders: Orders) -> App | None:
    try:
        app = load_app(target)
    except CommandFailed as error:
        orders.tell(News("failed", _explained(error), _directories()))
        return None
    orders.tell(News("imported", "", _directories()))
    return app


def _explained(error: CommandFailed) -> str:
    """The error, with all lines of the app's code that led to it."""
    cause = error.__cause__
    if cause is None or isinstance(cause, SyntaxError):
        return error.message
    frames = UserFrames().of(cause)
    lines = [line for frame in frames if frame.own for line in _told(frame)]
    *_, last = traceback.format_exception_only(cause)
    return "\n".join([error.message.splitlines()[0], *lines, last.strip()])


def _told(frame: Frame) -> list[str]:
    place = f"  {frame.file}:{frame.line} in {frame.function}"
    return [f"  {frame.cause}"] * bool(frame.cause) + [place] * bool(frame.file)


def _directories() -> list[str]:
    """The directories of the app's files: of all modules that are neither installed nor Python's own."""
    return sorted({os.getcwd(), *(str(Path(file).resolve().parent) for file in imported_files())})


def _serves(
    app: App,
    options: ServingOptions,
    shown: DevOptions,
    listening: socket.socket,
    orders: Orders,
    first: bool,
) -> bool:
    """Serves until an order; True if the order was to end."""
    told: list[Order] = []

    async def serve() -> int | None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()

        def hear() -> None:
            told.append(orders.wait())
            loop.call_soon_threadsafe(stop.set)

        def on_started(url: str, start: Start) -> None:
            if first:
                say(*opening_lines(app, url, options, start))
            orders.tell(News("serving"))
            # On a thread, so that an event loop held up by the app's code does not delay an order.
            threading.Thread(target=hear, name="styx-reload", daemon=True).start()

        def on_stopping() -> None:
            if not told or told[0].do == "end":
                say("Stopping: storing a snapshot …")

        return await dev_serving(app, options, shown, on_started, on_stopping, stop=stop, listener=listening)

    try:
        epoch = run_loop(serve())
    except (StyxError, OSError) as error:
        orders.tell(News("refused", str(error)))
        return False
    if told and told[0].do == "release":
        orders.tell(News("released"))
        return False
    say(closing_line(epoch, options.data_dir))
    return True
