"""`styx dev`: an app in one process, durable in a directory, behind an HTTP gateway."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from styx.cli.common_options import FunctionSeconds
from styx.cli.front_options import FrontOptions
from styx.model.limits import FUNCTION_SECONDS_DEFAULT
from styx.process.data_directory import problem_of

EXAMPLES: Final = """\
Examples:
  styx dev bank:app
  styx dev src/bank.py:app --port 9000 --data-dir /var/lib/bank
  STYX_PORT=9000 styx dev bank

Exit codes:
  0    stopped by Ctrl-C or SIGTERM, everything stored
  1    the module could not be imported, the engine failed, or the data
       directory is in use or damaged
  2    there is no such App, an option is wrong, or the App would lose what is
       in the data directory
"""


def dev(
    target: Annotated[
        str,
        Parameter(
            name="MODULE:APP",
            help="The App: bank:app, shop.bank:app or src/bank.py:app. ':app' may be left out.",
            env_var="STYX_APP",
        ),
    ],
    /,
    *,
    host: Annotated[str, Parameter(help="Address to listen on; 0.0.0.0 for all.", env_var="STYX_HOST")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="Port to listen on; 0 takes a free one.", env_var="STYX_PORT")] = 8080,
    data_dir: Annotated[
        Path, Parameter(help="Directory for log and snapshots; made if missing.", env_var="STYX_DATA_DIR")
    ] = Path(".styx"),
    snapshot_interval: Annotated[
        float, Parameter(help="Seconds between snapshots while there is work.", env_var="STYX_SNAPSHOT_INTERVAL")
    ] = 10.0,
    function_seconds_max: FunctionSeconds = FUNCTION_SECONDS_DEFAULT,
    quiet: Annotated[bool, Parameter(negative=(), help="No line for each request.", env_var="STYX_QUIET")] = False,
    all_errors: Annotated[
        bool,
        Parameter(negative=(), help="Show the lines of exceptions that the app means, too.", env_var="STYX_ALL_ERRORS"),
    ] = False,
    accept_changed_replay: Annotated[
        bool,
        Parameter(
            help="Replay the epochs recorded before a crash on the current code, and warn of each reply that differs.",
            negative=(),
        ),
    ] = False,
    check: Annotated[
        bool,
        Parameter(
            negative="--no-check",
            help="Run each transaction again, in another process, and report differences.",
            env_var="STYX_CHECK",
        ),
    ] = True,
    reload: Annotated[
        bool, Parameter(negative=(), help="Replace the code when the app's files change.", env_var="STYX_RELOAD")
    ] = False,
    front: FrontOptions | None = None,
) -> int:
    """Serve an app over HTTP, durable in a directory.

    Everything runs in this process and needs no other service. Kill it, start it
    again with the same --data-dir, and no answered request is lost, even if you
    have edited the code meanwhile. Ctrl-C or SIGTERM finishes the requests in
    flight and stores a snapshot.
    Each request is shown in a line. An exception that the app did not mean is
    shown with the lines of the app that led to it, and so are warnings; styx
    errors shows the last ones. STYX_LOG_FORMAT=json makes each line a JSON object.
    Each transaction is run again, alone and in the background, in a process that
    imported the app anew. A difference is reported: the function depends on
    global state, random, the clock or the order of a set.
    With --reload, changed files of the app are imported in a second process. If
    that works and the stored state fits, the new code takes over and no request
    is lost.
    The current directory is on Python's path. Delete the data directory to start
    from nothing.
    """
    from styx.cli.app_target import load_app
    from styx.cli.exit_codes import usage_error

    if not 0 <= port <= 65_535:
        raise usage_error(f"--port is a number from 0 to 65535, got {port}")
    if not 0 < snapshot_interval < float("inf"):
        raise usage_error(f"--snapshot-interval is a number of seconds above 0, got {snapshot_interval:g}")
    sockets = os.environ.get("STYX_RELOAD_SOCKETS", "") if reload else ""
    app = None if reload else load_app(target)
    problem = problem_of(data_dir)
    if problem is not None:
        raise usage_error(f"--data-dir {data_dir} cannot be used: {problem}; choose another directory")

    from styx.cli.front_options import front_of

    before = front_of(front or FrontOptions(), host)

    from styx.cli.dev_server import DevOptions, run_dev_server
    from styx.cli.serving import ServingOptions
    from styx.model.limits import Limits

    try:
        limits = Limits(function_seconds_max=function_seconds_max)
    except ValueError as error:
        raise usage_error(f"--function-seconds-max: {error}") from None
    options = ServingOptions(
        host,
        port,
        data_dir,
        snapshot_interval,
        front=before,
        accept_changed_replay=accept_changed_replay,
        limits=limits,
    )
    shown = DevOptions(not quiet, all_errors, target if check else None)
    if app is not None:
        from styx.cli.source_files import imported_files

        shown = shown._replace(files=imported_files())
        run_dev_server(app, options, shown)
    elif sockets:
        from styx.cli.reload.version import run_version

        run_version(target, options, shown, sockets)
    else:
        from styx.cli.reload.watcher import run_watcher

        return run_watcher(options)
    return 0
