"""The audit holds for a faultless engine, and for no other: each fault is caught by the check that is meant for it."""

from collections.abc import Callable
from itertools import islice

import msgspec
import pytest

from styx.cli.demo.audit import audit
from styx.cli.demo.bank import account_key, openings, transfers
from styx.messages import ReplyRecord, reply_of
from tests.cli.demo.serial_bank import SerialBank

ACCOUNTS = 10
CHECKS = ["answered once", "nothing lost", "replies kept", "serial order", "money"]


@pytest.fixture
def bank() -> SerialBank:
    """A run as it should be, with replies that were lost and calls that were sent again."""
    bank = SerialBank()
    bank.run(openings(ACCOUNTS))
    entries = bank.run(islice(transfers(ACCOUNTS, 3), 100))
    lost = bank.journal.new(entries[0].call)
    bank.send(lost)  # it commits, and nobody hears of it
    bank.journal.answered(lost, reply_of(bank.send(lost)))
    for entry in entries[-5:]:
        entry.asked_again.append(reply_of(bank.send(entry)))
    return bank


def failing(bank: SerialBank, balances: dict[str, int] | None = None) -> dict[str, str]:
    """The checks that do not hold, with what they say."""
    checks = audit(bank.journal, bank.history, bank.balances() if balances is None else balances, 4)
    assert [check.name for check in checks] == CHECKS
    return {check.name: check.detail for check in checks if not check.holds}


def test_faultless(bank: SerialBank) -> None:
    assert bank.journal.aborted > 5, "the workload must reach aborts"
    assert failing(bank) == {}


def change(bank: SerialBank, number: int, **changes: object) -> ReplyRecord:
    """Falsifies one record in the replies stream."""
    record = msgspec.structs.replace(bank.history.replies[number], **changes)
    bank.history.replies[number] = record
    return record


def committed_transfer(bank: SerialBank) -> int:
    return next(i for i, r in enumerate(bank.history.replies) if i >= ACCOUNTS and r.error is None)


def test_falsified_reply(bank: SerialBank) -> None:
    """Told to the client and logged alike: only the serial execution can tell."""
    number = committed_transfer(bank)
    record = change(bank, number, result=msgspec.msgpack.encode(12_345))
    bank.journal.entries[number].replies[0] = reply_of(record)
    assert "12345" in failing(bank)["serial order"]


def test_reply_that_the_engine_takes_back(bank: SerialBank) -> None:
    number = committed_transfer(bank)
    bank.journal.entries[number].replies[0] = bank.journal.entries[number].replies[0]._replace(result=12_345)
    assert list(failing(bank)) == ["nothing lost"]


def test_lost_effect(bank: SerialBank) -> None:
    """A transfer that was acknowledged, and whose money never arrived."""
    balances = bank.balances()
    balances[account_key(3)] -= 1
    found = failing(bank, balances)
    assert list(found) == ["serial order", "money"]
    assert account_key(3) in found["serial order"]
    assert "1,000 was paid in, 999 is there" in found["money"]


def test_effect_on_the_wrong_account(bank: SerialBank) -> None:
    balances = bank.balances()
    balances[account_key(3)] -= 1
    balances[account_key(4)] += 1
    assert list(failing(bank, balances)) == ["serial order"]


def test_lost_transaction(bank: SerialBank) -> None:
    """Acknowledged before the crash, and gone after it."""
    number = committed_transfer(bank)
    record = bank.history.replies.pop(number)
    del bank.history.requests[record.request_id]
    assert {"nothing lost", "serial order"} <= set(failing(bank))


def test_request_run_twice(bank: SerialBank) -> None:
    """Sent again after a crash, and run again instead of answered again."""
    lost = bank.journal.new(bank.journal.entries[ACCOUNTS].call)
    bank.send(lost)
    bank.forget(lost)
    bank.journal.answered(lost, reply_of(bank.send(lost)))
    assert "an idempotent request ran twice" in failing(bank)["serial order"]


def test_answer_that_changes(bank: SerialBank) -> None:
    entry = bank.journal.entries[ACCOUNTS + 99]
    entry.asked_again[0] = entry.asked_again[0]._replace(tid=1)
    assert "1 calls that were answered differently" in failing(bank)["replies kept"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda bank: bank.history.replies.append(bank.history.replies[20]),
        lambda bank: bank.history.replies.pop(20),
        lambda bank: bank.journal.entries[20].replies.append(bank.journal.entries[20].replies[0]),
        lambda bank: bank.journal.entries[20].replies.clear(),
        lambda bank: change(bank, 20, request_id="of nobody"),
    ],
    ids=["logged twice", "not logged", "told twice", "never told", "answers nobody"],
)
def test_not_exactly_once(bank: SerialBank, spoil: Callable[[SerialBank], object]) -> None:
    spoil(bank)
    assert "answered once" in failing(bank)
