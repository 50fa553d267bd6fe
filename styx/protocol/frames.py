"""Messages between workers: calls, synchronous results, acknowledgements. Plain msgpack, one frame per peer and pass.

The frame of a message names its generation and epoch; a frame of another generation is void. Paper section 5.2 (call
graphs) and 5.3 (acknowledgement shares).
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from styx.model.partitioning import Key


class Failure(NamedTuple):
    """The end of a transaction at one place of its serial execution; `(chain, position)` orders places.

    `position` is the failing invocation's path followed by the index of the call it would have made next, so that it
    stands after everything the invocation had waited for. `deviation` tells a re-execution that left its cached call
    graph from an exception; `code`, `type`, `message` are the reply's.
    """

    chain: bytes
    position: bytes
    deviation: bool
    code: str
    type: str
    message: str

    @property
    def place(self) -> tuple[bytes, bytes]:
        """Sorts failures of one transaction in serial order."""
        return (self.chain, self.position)


class Call(msgspec.Struct, array_like=True, tag=1, gc=False):
    """Run `function` on an entity as a part of transaction `tid`.

    `collided`: branches above have collided; the callee's ack says so, since the root may hear of nothing else in time.
    `share` is the exponent e of the share 2^-e that the callee must return to the root, -1 for a synchronous
    call, whose caller keeps the chain's share. `count` is the number of invocations of the transaction so far
    along this way. `read_only`: the transaction's root is a read-only function.
    """

    tid: int
    root_slot: int
    from_slot: int
    slot: int
    operator: str
    function: str
    key: Key
    params: bytes
    path: bytes
    chain: bytes
    share: int
    count: int
    timestamp_us: int
    sequential: bool = False
    externals: dict[bytes, bytes] | None = None
    collided: bool = False
    read_only: bool = False


class CallSpec(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A call by names: an asynchronous one on its way to the worker that will send it as a `Call`, or a patch's."""

    synchronous: bool
    slot: int
    operator: str
    function: str
    key: Key
    params: bytes


class Result(msgspec.Struct, array_like=True, tag=2, gc=False):
    """A synchronous call's end, sent to its caller's slot; `path` is the callee's.

    `value` is the encoded result, or None with the `failure`. `calls` are the asynchronous calls that the callee
    and its own synchronous callees made: the chain's outermost function sends them when it returns.
    """

    tid: int
    slot: int
    path: bytes
    value: bytes | None
    count: int
    calls: list[tuple[bytes, CallSpec]]
    collided: bool = False
    failure: Failure | None = None


class Ack(msgspec.Struct, array_like=True, tag=3, gc=False):
    """Shares returned to a root: `share` / 2^`scale`, summed over one pass of the loop.

    `calls` is used in sequential mode only: the asynchronous calls of the finished chain, for the root to run in order.
    `cut`: a function of the chain was ended by the watchdog, whichever failure comes first.
    """

    tid: int
    root_slot: int
    share: int
    scale: int
    count: int
    collided: bool = False
    overflow: bool = False
    external: bool = False
    failure: Failure | None = None
    calls: list[tuple[bytes, CallSpec]] = []
    cut: bool = False


class Drop(msgspec.Struct, array_like=True, tag=4, gc=False):
    """The transaction leaves this epoch (it is over its call limit): forget its work."""

    tid: int


class ExternalDone(msgspec.Struct, array_like=True, tag=5, gc=False):
    """An external function that a transaction waits for has ended; `outcome` is an encoded `ExternalOutcome`."""

    tid: int
    root_slot: int
    key: bytes
    outcome: bytes


class Patch(msgspec.Struct, array_like=True, tag=6, gc=False):
    """A change of what is cached of a transaction on `slot`, by what ran on `from_slot` in a round of the lock phase.

    With a `call`: the call at `path` is this one. With a `result`: that is what the synchronous call at `path` gives.
    With neither: the call at `path` is gone. `cached`: it replaces or withdraws the call that the execution step made.
    The fields from `chain` on go with a call. They are for a slot that the transaction had no part on.
    """

    round: int
    tid: int
    slot: int
    from_slot: int
    path: bytes
    call: CallSpec | None = None
    result: bytes | None = None
    cached: bool = False
    chain: bytes = b""
    root_slot: int = 0
    timestamp_us: int = 0
    externals: dict[bytes, bytes] | None = None


class ExternalOutcome(msgspec.Struct, array_like=True, gc=False):
    """What an external function gave: an encoded value, or the (type, message) of its exception."""

    value: bytes | None
    error: tuple[str, str] | None = None


_outcome_decoder = msgspec.msgpack.Decoder(ExternalOutcome)


def decode_outcome(data: bytes) -> ExternalOutcome:
    """The outcome that an epoch record or the externals stream carries."""
    return _outcome_decoder.decode(data)


WorkerMessage = Call | Result | Ack | Drop | ExternalDone | Patch


class Frame(msgspec.Struct, array_like=True, tag=1, gc=False):
    """Everything of the protocol that one worker has for one peer after one pass of its loop, in sending order."""

    generation: int
    epoch: int
    sender: int
    messages: list[WorkerMessage]
