"""What is large: each case is a number of requests that are sent at once, and what each of them must come to."""

from __future__ import annotations

from typing import Final, NamedTuple

MB: Final = 1_000_000
"""Below the limit of a value, which is 1 MiB, by what encoding adds."""


class Case(NamedTuple):
    """`requests` calls of `function` at once; each gives `result`, a number or the length of a text.

    With `before`, entities are made to hold so many bytes first, and each request is told of one of them.
    """

    name: str
    requests: int
    function: str
    arguments: tuple[int, ...]
    result: int
    before: int = 0

    def scaled(self, share: float) -> Case:
        """The same with fewer requests, or with smaller ones if it is a single one."""
        if self.requests > 1:
            return self._replace(requests=max(2, int(self.requests * share)))
        calls = max(2, int(self.arguments[0] * share))
        return self._replace(arguments=(calls, *self.arguments[1:]), result=calls)


CASES: Final = {
    case.name: case
    for case in (
        Case("arguments", 1, "spread", (200, MB), 200),
        Case("reads", 800, "read", (), MB, before=MB),
        Case("results", 2_000, "answer", (MB,), MB),
        Case("outside", 150, "outside", (MB,), MB),
        Case("puts", 40, "write", (90_000,), 90_000),
    )
}
HOLDERS: Final = 16
"""Entities that hold what others read."""
