"""The bare loop does the work it is measured for."""

from __future__ import annotations

import pytest

from benchmarks.reference import bare
from benchmarks.reference.bare_loop import bare_loop
from benchmarks.reference.transfers import START_BALANCE, encoded, transfers
from styx.messages import decode_reply
from styx.values.codec import decode_plain, encode_strict


def state_of(balances: dict[int, int]) -> dict[int, bytes]:
    return {key: encode_strict({"balance": balance}) for key, balance in balances.items()}


def test_a_transfer_moves_money_and_replies_with_what_is_left() -> None:
    state = state_of({1: 100, 2: 5})
    (reply,) = map(decode_reply, bare_loop(encoded([(1, 2, 30)]), state))
    assert (reply.request_id, decode_plain(reply.result), reply.error) == ("r0", 70, None)
    assert {key: decode_plain(value)["balance"] for key, value in state.items()} == {1: 70, 2: 35}


def test_a_debtor_that_cannot_pay_aborts_and_keeps_everything() -> None:
    state = state_of({1: 10, 2: 5})
    (reply,) = map(decode_reply, bare_loop(encoded([(1, 2, 11)]), state))
    assert reply.error == ("aborted", "InsufficientFunds", "1 cannot pay 11")
    assert state == state_of({1: 10, 2: 5})


def test_transfers_are_seeded_and_between_different_keys() -> None:
    drawn = transfers(200, 3, seed=1)
    assert drawn == transfers(200, 3, seed=1) != transfers(200, 3, seed=2)
    assert all(debtor != creditor and 1 <= amount <= 100 for debtor, creditor, amount in drawn)


def test_each_run_gives_a_figure() -> None:
    assert len(bare.bare_us(keys=10, count=20, runs=3)) == 3


def test_lost_money_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def losing(requests: list[bytes], state: dict[int, bytes]) -> list[bytes]:
        replies = bare_loop(requests, state)
        state[0] = encode_strict({"balance": START_BALANCE // 2})
        return replies

    monkeypatch.setattr(bare, "bare_loop", losing)
    with pytest.raises(AssertionError, match="instead of"):
        bare.bare_us(keys=10, count=20, runs=1)
