"""The checking process's main program: messages come on standard input, and findings go to standard output.

python -m styx.cli.check.main

The app's output is dropped here, because the serving process has already printed it.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from typing import BinaryIO, Final

from styx.cli.app_target import load_app
from styx.cli.check.checker import Checker
from styx.cli.check.messages import CHANGED, Begin, Checked, Difference, Epoch, State, encode, read, to_checker, write
from styx.cli.check.source_files import stamps_of
from styx.cli.exit_codes import CommandFailed

NICE: Final = 10
"""Whoever serves comes first."""
EPOCH_SECONDS_MAX: Final = 60
"""For the functions of one epoch; then the process ends."""
ENTITIES_MAX: Final = 200_000


def main() -> None:
    """Until standard input ends."""
    os.nice(NICE)
    incoming, outgoing = _streams()
    logging.disable(logging.CRITICAL)
    sys.dont_write_bytecode = True
    checker: Checker | None = None
    while (data := read(incoming)) is not None:
        message = to_checker(data)
        found: Difference | None = None
        problem = ""
        signal.alarm(EPOCH_SECONDS_MAX)
        if isinstance(message, Begin):
            try:
                checker = Checker(load_app(message.target), message.limits, message.n_slots)
            except CommandFailed as error:
                problem = error.message
            if stamps_of(message.files) != message.files:
                problem = CHANGED
        elif isinstance(message, State):
            assert checker is not None
            checker.state(message)
        else:
            assert isinstance(message, Epoch)
            assert checker is not None
            found = checker.epoch(message)
            if checker.entities > ENTITIES_MAX:
                problem = f"there are more than {ENTITIES_MAX:,} entities"
        signal.alarm(0)
        if found is not None:
            write(outgoing, encode(found))
        write(outgoing, encode(Checked(problem)))
        if problem:
            return


def _streams() -> tuple[BinaryIO, BinaryIO]:
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    return incoming, outgoing


if __name__ == "__main__":
    main()
