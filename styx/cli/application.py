"""The commands as one application: parsing, help, and the form of each kind of error.

A command's module is light: it imports the heavy parts inside its function.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from styx.cli import (
    audit,
    backup,
    call,
    changes,
    coordinator,
    dead,
    deploy,
    dev,
    drain,
    errors,
    events,
    explain,
    gateway,
    graph,
    ingest,
    keys,
    new,
    replica,
    restore,
    scale,
    set_aside,
    sql,
    state,
    status,
    version_text,
    worker,
)
from styx.cli.demo import command as demo
from styx.cli.exit_codes import FAILURE, INTERRUPTED, SUCCESS, TERMINATED, USAGE, CommandFailed
from styx.cli.up import command as up
from styx.errors import ConfigurationError, StyxError
from styx.process.extras import lacking

_HELP = """
Transactional stateful functions: every request is one serializable transaction, exactly once.

First steps:
  styx demo                           see it run, crash and recover
  styx new shop && cd shop            a small project to start from
  styx dev shop:app                   serve it, durable in .styx
  styx call account ada deposit 100   send it a request
  styx state get account ada          look at the entity
  styx events order-paid --follow     what its transactions emit
  styx changes account                what its transactions change
  styx sql --data-dir .styx           what a snapshot has, in SQL

A cluster on Kafka and an object store:
  styx up shop:app --log … --store …  all of it on this machine
  styx status                         its state
  styx coordinator, worker, gateway   its processes one by one
  styx ingest                         other people's topics in
  styx replica                        answers in SQL, beside the cluster
  styx backup, styx restore           copy its data to another place, and back
  styx audit                          find functions that are not deterministic
  styx dead                           calls for later that were given up
  styx keys                           who may use a gateway
  styx set-aside                      refuse a request at which it fails

Every option can also be given as the environment variable that its help names.
"""
_EPILOGUE = """
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted; see each command.
STYX_DEBUG=1 in the environment shows the traceback of an error, and
STYX_LOG_FORMAT=json makes each log line a JSON object.
"""
_COMMANDS = {
    "demo": demo,
    "new": new,
    "dev": dev,
    "call": call,
    "events": events,
    "changes": changes,
    "errors": errors,
    "explain": explain,
    "graph": graph,
    "sql": sql,
    "up": up,
    "status": status,
    "deploy": deploy,
    "scale": scale,
    "drain": drain,
    "backup": backup,
    "restore": restore,
    "audit": audit,
    "set_aside": set_aside,
    "coordinator": coordinator,
    "worker": worker,
    "gateway": gateway,
    "replica": replica,
    "ingest": ingest,
}
"""Each command is the function of its name in its module; `EXAMPLES` in the module ends its help."""
_GROUPS = {"keys": keys, "state": state, "dead": dead}
"""Each group of commands is made by the function of its name in its module."""
_NO_EXTRAS = sys.stdlib_module_names | {"styx"}
"""Packages that an installation without extras has."""


def application() -> App:
    """The parser, with every command."""
    app = App(
        name="styx",
        help=_HELP,
        version=version_text(),
        version_flags=["--version"],
        help_flags=["--help", "-h"],
        help_format="plaintext",
        help_epilogue=_EPILOGUE,
        group_parameters="Options",
        suppress_keyboard_interrupt=False,
    )
    for order, (name, module) in enumerate(_COMMANDS.items()):
        app.command(getattr(module, name), help_epilogue=module.EXAMPLES, sort_key=order)
    for name, module in _GROUPS.items():
        app.command(getattr(module, name)(sort_key=len(_COMMANDS)))
    return app


def run(arguments: Sequence[str]) -> int:
    """Runs one command; returns its exit code and prints its errors."""
    app = application()
    _hear_sigterm()
    try:
        code = app(
            list(arguments),
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
        sys.stdout.flush()  # a closed pipe shows here rather than in the interpreter's last moments
        return SUCCESS if code is None else int(code)
    except BrokenPipeError:
        # The reader of the output is gone. The rest of the buffer must not fail a second time at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - no other place turns an error into words
        if os.environ.get("STYX_DEBUG", "0") not in ("", "0"):
            import traceback

            traceback.print_exception(error)
        message, code = _explain(error)
        _complain(message)
        return code


def _complain(message: str) -> None:
    if os.environ.get("STYX_LOG_FORMAT") == "json":
        import time

        from styx.reports.json_lines import json_line

        message = json_line(time.time(), "ERROR", "styx", "styx", {"message": message})
    else:
        message = f"styx: {message}"
    print(message, file=sys.stderr)


def _hear_sigterm() -> None:
    """Handles SIGTERM in a container's first process, which a signal without a handler does not end."""
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))


def _explain(error: BaseException) -> tuple[str, int]:
    """The words and the exit code for an error."""
    match error:
        case CommandFailed():
            return error.message, error.exit_code
        case CycloptsError():
            command = " ".join(("styx", *(error.command_chain or ())))
            return f"{error}\nSee: {command} --help", USAGE
        case ConfigurationError():
            return str(error), USAGE
        case StyxError() | OSError():
            return str(error), FAILURE
        case KeyboardInterrupt():
            return "interrupted", INTERRUPTED
        case ModuleNotFoundError(name=str(name)) if name.partition(".")[0] not in _NO_EXTRAS:
            return lacking("this command", name, "all"), FAILURE
    text = f"{type(error).__name__}: {error}"
    return f"this is a fault of styx itself: {text}\nRun it again with STYX_DEBUG=1 and report what it prints.", FAILURE
