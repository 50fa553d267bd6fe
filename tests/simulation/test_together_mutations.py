"""Mutation proof for functions that run at once: where one of them may reach what another one reaches, the order of
arrival would decide. A replay on other numbers of workers finds that.
"""

from __future__ import annotations

import pytest

from proof.elsewhere import compare_elsewhere
from proof.simulation import SimulationFailure
from styx.worker.calls_together import may_leave_partition
from styx.worker.invocation import Invocation
from styx.worker.waits import Waits
from tests.plain_form import plain_form

pytestmark = [plain_form, pytest.mark.slow]

NOTICED_BY = 68020


def test_a_transaction_that_only_counts_as_a_collision_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def stays(self: Waits, invocation: Invocation) -> bool:
        if may_leave_partition(invocation):
            invocation._footprint.collided = True
        return False

    monkeypatch.setattr(Waits, "_leaves_partition", stays)
    with pytest.raises(SimulationFailure, match=r"replayed on \d workers"):
        compare_elsewhere(NOTICED_BY, arrival=NOTICED_BY)
