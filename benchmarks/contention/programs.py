"""The requests: random programs of `proof.chaos_app` on a few entities, none of them wrong in itself.

A program's targets, arguments and results depend on the state that it finds. So a transaction that is run again behind
others nearly always makes other calls.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import msgspec

from benchmarks.driver.workload import Planned
from proof.chaos_app import app
from proof.random_requests import Profile, random_request
from styx.messages import Reply

KEYS_DEFAULT: Final = 8
KEYS_MAX: Final = 100_000

_decode = msgspec.msgpack.Decoder(list[Any]).decode


class Programs:
    """A `Generator` of the open loop, for one client: `sent` are its requests in order, `replies` and `silent` what
    became of them. `keys` entities of each of three operators, and one account more.
    """

    def __init__(self, keys: int, seed: int) -> None:
        self.sent: list[Planned] = []
        self.replies: list[Reply] = []
        self.silent: list[Planned] = []
        self._profile = Profile(keys=keys, poisoned=0.0)
        self._rng = Random(f"contention {seed}")

    def next(self) -> Planned:
        """See `Generator.next`."""
        request = random_request(self._rng, self._profile)
        key = tuple(request.key) if isinstance(request.key, list) else request.key
        operator = app.operator(request.operator)
        planned = Planned(request.function, operator, key, request.function, tuple(_decode(request.params)))
        self.sent.append(planned)
        return planned

    def answered(self, planned: Planned, reply: Reply) -> None:
        """See `Generator.answered`."""
        self.replies.append(reply)

    def unknown(self, planned: Planned) -> None:
        """See `Generator.unknown`."""
        self.silent.append(planned)

    def witness(self) -> None:
        """See `Generator.witness`; the parent has this object itself."""

    def names_of_silent(self) -> list[str]:
        """Each request without a reply, by its number and what it was."""
        silent = {id(planned) for planned in self.silent}
        return [
            f"request {number}: {planned.operator.name}[{planned.key!r}].{planned.function}"
            for number, planned in enumerate(self.sent)
            if id(planned) in silent
        ]
