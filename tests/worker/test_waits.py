"""Functions that wait for calls which run at once, on two workers: messages, failures and counts."""

from __future__ import annotations

from styx import App, Context, Limits, Operator, PartitionContext
from styx.protocol.frames import Ack, Call, Result, WorkerMessage
from styx.values.codec import decode_plain, encode_strict
from styx.worker.executor import Executor
from styx.worker.root import RootTransaction
from styx.worker.slot import Slot

N_SLOTS = 16

cart = Operator("cart")
ask = Operator("ask", key_type=int)


@cart.register_partition
async def partition(ctx: PartitionContext, fails_from: int) -> int:
    if ctx.partition >= fails_from:
        raise ValueError(f"partition {ctx.partition}")
    return ctx.partition


@ask.register
async def every(ctx: Context, fails_from: int) -> list[int]:
    return await ctx.call_all(cart, partition, (fails_from,))


app = App("shop", [cart, ask])


class TwoWorkers:
    """One transaction, rooted on slot 0 of the first of two workers; slots take turns."""

    def __init__(self, fails_from: int, sequential: bool = False, limits: Limits | None = None) -> None:
        self.executors = [Executor(worker, app, limits or Limits(), N_SLOTS) for worker in range(2)]
        for worker, executor in enumerate(self.executors):
            executor.owners = {slot: slot % 2 for slot in range(N_SLOTS)}
            executor.slots = {slot: Slot(slot) for slot in range(worker, N_SLOTS, 2)}
        key = next(key for key in range(100) if ask.slot_of(key, N_SLOTS) == 0)
        function = app.resolve("ask", "every")
        params = encode_strict([fails_from])
        self.root = RootTransaction(1, 0, 0, 0, b"", "r", 0, function, key, params, sequential)
        self.sent: list[list[WorkerMessage]] = []
        self.executors[0].begin(0, [self.root])
        self.executors[1].begin(0, [])

    def run(self, backwards: bool = False) -> None:
        """Runs the transaction to its end; `backwards`: the second worker's results come in the opposite order."""
        at = 0
        while True:
            self.executors[at].run(1_000)
            frames = self.executors[at].outbox.take(0, 0, at)
            if not frames:
                return
            messages = [message for _, frame in frames for message in frame.messages]
            self.sent.append(messages)
            at = 1 - at
            for message in reversed(messages) if backwards and at == 0 else messages:
                assert isinstance(message, Call | Result | Ack)
                self.executors[at].deliver(message)


def test_calls_on_all_partitions_are_one_wait() -> None:
    workers = TwoWorkers(N_SLOTS)
    workers.run()
    assert [len(messages) for messages in workers.sent] == [8, 8], "there and back, once"
    assert workers.root.result is not None
    assert decode_plain(workers.root.result) == list(range(N_SLOTS))
    assert (workers.root.done, workers.root.count) == (True, 1 + N_SLOTS)


def test_in_sequential_mode_they_run_one_after_the_other() -> None:
    workers = TwoWorkers(N_SLOTS, sequential=True)
    workers.run()
    assert [len(messages) for messages in workers.sent] == [1] * 16, "there and back, for each partition elsewhere"
    assert (workers.root.done, workers.root.count) == (True, 1 + N_SLOTS)


def test_the_lowest_partitions_exception_counts_when_all_have_ended() -> None:
    for backwards in (False, True):
        workers = TwoWorkers(3)
        workers.run(backwards)
        failure = workers.root.failure
        assert failure is not None
        assert failure.message == "partition 3"
        assert [len(messages) for messages in workers.sent] == [8, 8]


def test_a_transaction_does_not_end_before_all_calls_have() -> None:
    workers = TwoWorkers(0)
    workers.executors[0].run(1_000)
    assert workers.executors[0].idle
    assert not workers.root.done, "the first worker's own calls have failed; the other one's still run"
    workers.run()
    assert workers.root.done


def test_calls_that_exceed_the_limit_together_are_refused_before_the_first_runs() -> None:
    workers = TwoWorkers(0, sequential=True, limits=Limits(invocations_max=N_SLOTS))
    workers.run()
    failure = workers.root.failure
    assert failure is not None
    assert (failure.type, workers.sent) == ("CallLimitExceeded", [])
