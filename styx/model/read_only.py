"""What a read-only function may not do, and the errors that say so.

A function registered with `read_only=True` writes nothing, calls only functions of which the same is declared, and
makes no external call. This holds wherever it runs: a function's own code decides, never who called it. Whatever it
tries ends the transaction. Paper section 3.
"""

from __future__ import annotations

from styx.errors import ReadOnlyViolation


def used(where: str, function: str, method: str) -> ReadOnlyViolation:
    """The error of the read-only `function` that used a method of its context; `where` names function and entity."""
    return ReadOnlyViolation(
        f"{where} used ctx.{method}, but is registered with read_only=True: do that in another function, or register "
        f"{function} without read_only=True"
    )


def called(where: str, function: str, callee: str) -> ReadOnlyViolation:
    """The error of the read-only `function` that called one which is not."""
    return ReadOnlyViolation(
        f"{where} called {callee}, which may write, but is registered with read_only=True: register {callee} with "
        f"read_only=True if it only reads, or {function} without"
    )
