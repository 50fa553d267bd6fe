"""What a fork of the test's process says, as a Python program's that forks would."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable


def in_fork(use: Callable[[], str]) -> str:
    """What `use` returns, or raises, in a fork of this process, which then ends at once."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python warns of forks of a process with threads; that is what is tried here.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        said = "it did not end"
        try:
            said = use()
        except BaseException as error:  # noqa: BLE001 - told to the parent
            said = f"{type(error).__name__}: {error}"
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return said
