"""The refusal of a request by a method that its path does not have. Not in `status.py`, which is compiled: a native
class does not derive from an interpreted one.
"""

from __future__ import annotations

from styx.errors import RequestRejected


class MethodNotAllowed(RequestRejected):
    """A request came by another method than `methods`, which its path has."""

    def __init__(self, method: str, methods: tuple[str, ...]) -> None:
        message = f"requests are sent here with {' or '.join(methods)}, not {method}"
        if method in ("GET", "HEAD"):
            message += "; with GET only to a function that is registered with read_only=True"
        super().__init__("method_not_allowed", message)
        self.methods = methods
