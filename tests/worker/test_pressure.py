"""Epochs become smaller behind large replies, and as large as before when replies are small again."""

from __future__ import annotations

from styx.worker.pressure import REPLY_BYTES, Pressure


def test_small_replies_change_nothing() -> None:
    pressure = Pressure()
    for _ in range(10):
        pressure.epoch_ended(250, REPLY_BYTES)
        assert pressure.room(250) == 250
    pressure.epoch_ended(0, 0)
    assert pressure.room(250) == 250


def test_room_for_about_as_many_bytes_as_an_epoch_should_have() -> None:
    pressure = Pressure()
    pressure.epoch_ended(1000, 4 * REPLY_BYTES)
    assert pressure.room(1000) == 250
    pressure.epoch_ended(250, REPLY_BYTES)
    assert pressure.room(1000) == 500
    pressure.epoch_ended(0, 0)
    assert pressure.room(1000) == 500, "an epoch without answers says nothing"
    pressure.epoch_ended(500, 0)
    assert pressure.room(1000) == 1000


def test_at_least_one_transaction_has_its_turn() -> None:
    pressure = Pressure()
    pressure.epoch_ended(2, 100 * REPLY_BYTES)
    assert pressure.room(1000) == 1
