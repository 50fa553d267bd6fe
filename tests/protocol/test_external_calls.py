"""Transactions that wait for external functions: nothing is lost, and nothing spins, while they do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from styx import App, Context, Operator
from styx.model.limits import Limits
from styx.worker.events import AppendExternal, RunExternal
from styx.worker.worker import Worker
from tests.protocol.deployment import Deployment, _Place

entity = Operator("entity")


def outside() -> int:
    raise AssertionError("the tests end external calls themselves")


@entity.register
async def ask(ctx: Context) -> Any:
    answer = await ctx.call_external(outside)
    await ctx.put(answer)
    return answer


app = App("asking", [entity])


def test_an_outcome_that_is_known_at_once_is_kept_until_its_transaction_is_parked() -> None:
    class KnownAtOnce(Deployment):
        def external_asked(self, worker: Worker, effect: RunExternal) -> None:
            self._queue.insert(0, ((worker.id, worker.id), partial(self.end_external, worker, effect, 7)))

    deployment = KnownAtOnce(app, workers=1, slots=1)
    deployment.send("entity", "a", "ask")
    deployment.run()
    assert deployment.reply(0).result == b"\x07"
    deployment.check()


def test_requests_behind_a_full_parking_place_wait_without_empty_epochs() -> None:
    deployment = Deployment(app, workers=1, slots=1, limits=Limits(parked_max=1))
    for key in "abc":
        deployment.send("entity", key, "ask")
        deployment.run(until=lambda: deployment.epoch_records > 100)
    # One to ask, one in sequential mode to be parked; the others have not begun.
    assert deployment.epoch_records == 2
    while deployment.externals:
        worker, effect = deployment.externals.pop(0)
        deployment.end_external(worker, effect, 7)
        deployment.run()
    deployment.check()


def test_a_transaction_goes_on_only_when_its_outcome_is_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a replay might meet another one, behind a reply."""
    held: list[Callable[[], None]] = []

    def external(self: _Place, effect: AppendExternal, durable: Callable[[bytes | None], None]) -> None:
        outcome = effect.record.outcome
        if outcome is None:
            durable(None)
        else:
            held.append(lambda: durable(outcome))

    monkeypatch.setattr(_Place, "external", external)
    deployment = Deployment(app, workers=1, slots=1)
    deployment.send("entity", "a", "ask")
    deployment.run()
    worker, effect = deployment.externals.pop()
    deployment.end_external(worker, effect, 7)
    deployment.run()
    before = deployment.epoch_records
    [append] = held
    append()
    deployment.run()
    assert deployment.epoch_records == before + 1
    assert deployment.reply(0).result == b"\x07"
