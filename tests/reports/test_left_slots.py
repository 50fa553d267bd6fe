"""What people are told of local functions that leave their slot."""

from __future__ import annotations

import pytest

from styx.reports.left_slots import AGAIN_SECONDS, LeftSlots


def test_each_function_is_named_once_in_a_while_with_what_came_since(caplog: pytest.LogCaptureFixture) -> None:
    now_s = [0.0]
    left = LeftSlots(lambda: now_s[0])
    left.add({("seat", "take"): 2, ("seat", "free"): 1})
    left.add({("seat", "take"): 5})
    assert len(caplog.messages) == 2
    assert "seat.take is registered with local=True, but 2 of its requests" in caplog.messages[0]
    now_s[0] = AGAIN_SECONDS
    left.add({("seat", "take"): 1})
    assert "but 6 of its requests" in caplog.messages[2]
    assert left.by_function == {"seat.take": 8, "seat.free": 1}
