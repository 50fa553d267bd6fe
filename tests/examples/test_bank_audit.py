"""The bank audit holds for a faultless deployment and for no other: each broken promise is found by its rule."""

import asyncio
import os
import signal
from collections.abc import Callable

import pytest

import styx
from examples.bank import app
from examples.bank_audit import serial_order
from examples.bank_audit.__main__ import main
from examples.bank_audit.findings import Findings
from examples.bank_audit.scenario import BankAudit, Plan, Result
from examples.bank_audit.serial_order import SerialOrder
from examples.bank_audit.workload import Call
from styx.cli.demo.display import PlainDisplay
from styx.messages import Reply, ReplyError
from tests.examples.fake_bank import FakeBank
from tests.gateway.running import running

ACCOUNTS = 12
RULES = ["answered", "real time", "replies kept", "serial order", "balances", "money"]
OPENINGS = 1 + ACCOUNTS
"""Requests before the first transfer: one that reaches the bank, and the openings."""


@pytest.fixture
def bank(monkeypatch: pytest.MonkeyPatch) -> FakeBank:
    """What the audit connects to."""
    bank = FakeBank()
    monkeypatch.setattr(styx, "connect", lambda url, app, **credential: bank)
    return bank


def plan(url: str = "http://fake", seconds: float = 0.3, wait_s: float = 5.0) -> Plan:
    return Plan(url, clients=8, seconds=seconds, accounts=ACCOUNTS, wait_s=wait_s)


def audited(wait_s: float = 5.0) -> Result:
    return asyncio.run(BankAudit(plan(wait_s=wait_s), PlainDisplay()).run())


def wrong(result: Result) -> dict[str, str]:
    return {check.name: check.detail for check in result.checks if not check.holds}


def test_faultless(bank: FakeBank) -> None:
    result = audited()
    assert wrong(result) == {}
    assert [check.name for check in result.checks] == RULES
    assert result.totals.aborted > 0, "the workload must reach aborts"
    assert result.totals.asked_again > 0
    assert result.transfers > ACCOUNTS
    assert result.totals.answered == result.transfers + 2 * ACCOUNTS


def test_on_an_engine_behind_its_gateway() -> None:
    async def run() -> Result:
        async with styx.embedded(app) as client, running(client.engine) as server:
            return await BankAudit(plan(server.url, seconds=1), PlainDisplay()).run()

    result = asyncio.run(run())
    assert wrong(result) == {}
    assert result.transfers > 0


# Each rule, broken -----------------------------------------------------------------------------------------


def test_answers_that_are_lost_or_refused_for_now_are_asked_for_again(bank: FakeBank) -> None:
    def lose(number: int) -> None:
        if number % 7 == 0:
            raise ConnectionError("it broke")
        if number % 11 == 0:
            raise TimeoutError

    def refuse(number: int, function: str) -> Reply | None:
        return failing("unavailable") if number % 13 == 0 else None

    bank.after, bank.before = lose, refuse
    result = audited()
    assert wrong(result) == {}
    assert result.totals.sent_again > 0


def test_no_answer(bank: FakeBank) -> None:
    def silent(number: int, function: str) -> Reply | None:
        if number > OPENINGS + 30:
            raise TimeoutError("no reply")
        return None

    bank.before = silent
    result = audited(wait_s=0.1)
    assert list(wrong(result)) == ["answered"]
    assert "got no answer: no reply" in wrong(result)["answered"]


@pytest.mark.parametrize("code", ["unknown_function", "bad_arguments", "internal"])
def test_an_answer_that_no_bank_gives(bank: FakeBank, code: str) -> None:
    bank.before = lambda number, function: failing(code) if number == OPENINGS + 20 else None
    assert f"got no answer: {code}" in wrong(audited())["answered"]


def test_a_request_that_runs_twice(bank: FakeBank) -> None:
    bank.remembers = False
    assert "replies kept" in wrong(audited())


def test_a_reply_that_is_lost_and_whose_request_runs_twice(bank: FakeBank, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has seen the first reply: only the serial order can tell."""
    monkeypatch.setattr("examples.bank_audit.clients.ASKED_AGAIN_SHARE", 0.0)

    def lose(number: int) -> None:
        if number == OPENINGS + 1:
            raise ConnectionError("it broke")

    bank.after, bank.remembers = lose, False
    assert list(wrong(audited())) == ["serial order"]


def test_an_answer_out_of_its_time(bank: FakeBank) -> None:
    changed: list[int] = []

    def early(number: int, function: str, reply: Reply) -> Reply:
        # A request that is asked again gets the first reply, which is not changed, and an abort has no place.
        if number < OPENINGS + 30 or changed or reply.error is not None:
            return reply
        changed.append(number)
        return reply._replace(epoch=2)

    bank.change = early
    assert "sent after a reply of epoch" in wrong(audited())["real time"]


@pytest.mark.parametrize(
    "falsified",
    [
        lambda reply: reply._replace(result=12_345),
        lambda reply: reply._replace(result=str(reply.result)),
        lambda reply: reply._replace(result=None, error=ReplyError("InsufficientFunds", "no", "aborted")),
        lambda reply: reply._replace(epoch=reply.epoch + 1, tid=reply.tid + 1),
    ],
    ids=["another result", "another type", "an abort", "another place"],
)
def test_an_answer_that_the_serial_execution_does_not_give(bank: FakeBank, falsified: Callable[[Reply], Reply]) -> None:
    def change(number: int, function: str, reply: Reply) -> Reply:
        return falsified(reply) if number > OPENINGS and function == "transfer" and reply.error is None else reply

    bank.change = change
    assert "serial order" in wrong(audited())


def test_an_abort_of_another_kind(bank: FakeBank) -> None:
    def change(number: int, function: str, reply: Reply) -> Reply:
        return reply if reply.error is None or number == 1 else reply._replace(error=reply.error._replace(type="Other"))

    bank.change = change
    text = wrong(audited())["serial order"]
    assert "-> Other; the serial execution gives InsufficientFunds. Before it, on the same accounts:" in text


def test_money_that_never_arrives(bank: FakeBank) -> None:
    """The balances of transfers show it, long before those that are asked for."""
    run = bank.run

    def lossy(key: str, function: str, args: tuple[object, ...]) -> Reply:
        reply = run(key, function, args)
        if function == "transfer" and reply.error is None:
            run(str(args[0]), "credit", (-int(str(args[1])),))
        return reply

    bank.run = lossy  # type: ignore[method-assign]
    assert list(wrong(audited())) == ["serial order"]


def test_balances_that_are_not_those_of_the_serial_execution(bank: FakeBank) -> None:
    def change(number: int, function: str, reply: Reply) -> Reply:
        return reply._replace(result=reply.result + 1) if function == "credit" else reply

    bank.change = change
    found = wrong(audited())
    assert next(iter(found)) == "balances"
    assert "the serial execution gives" in found["balances"]


def test_money_that_is_made(bank: FakeBank, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the serial execution made it as well, only the sum would tell."""
    monkeypatch.setattr("examples.bank_audit.scenario.Accounts.paid_in", ACCOUNTS * 100 - 1)
    assert wrong(audited()) == {"money": "1,199 was paid in, 1,200 is there"}


# The order -------------------------------------------------------------------------------------------------


class Replies:
    """A faultless bank's replies, given to an order when a test says so."""

    def __init__(self) -> None:
        self.findings = Findings()
        self.order = SerialOrder(self.findings)
        self._bank = FakeBank()
        self._sent: dict[int, tuple[Call, Reply]] = {}

    def send(self, *calls: Call) -> list[int]:
        numbers = []
        for call in calls:
            number = len(self._sent)
            self._sent[number] = call, self._bank.run(call.key, call.function, call.arguments)
            self.order.sent(number)
            numbers.append(number)
        return numbers

    def answer(self, *numbers: int) -> None:
        for number in numbers:
            self.order.answered(number, *self._sent[number])


def test_replies_are_run_again_as_soon_as_nothing_can_come_before_them() -> None:
    replies = Replies()
    opening, payment = replies.send(Call("a", "open", (10,)), Call("a", "transfer", ("b", 3)))
    replies.answer(payment)
    assert (replies.order.replayed, replies.order.waiting) == (0, 1), "the opening may come before it"
    (third,) = replies.send(Call("b", "open", (1,)))
    replies.answer(opening)
    assert (replies.order.replayed, replies.order.waiting) == (2, 0), "what is sent after a reply comes behind it"
    replies.answer(third)
    assert replies.order.replayed == 3
    assert (replies.order.balance("a"), replies.order.balance("b"), replies.order.balance("c")) == (10, 1, 0)
    assert not replies.findings


def test_two_requests_at_one_place() -> None:
    replies = Replies()
    numbers = replies.send(Call("a", "open", (10,)), Call("a", "open", (10,)))
    call, reply = replies._sent[numbers[0]]
    for number in numbers:
        replies.order.answered(number, call, reply)
    assert "another request has the same place" in (replies.findings.of("serial order") or "")


def test_clients_wait_while_too_many_replies_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serial_order, "WAITING_MAX", 2)
    replies = Replies()
    oldest, *others = replies.send(*[Call("a", "open", (10,)) for _ in range(3)])
    replies.answer(*others)
    assert replies.order.full
    replies.answer(oldest)
    assert not replies.order.full


def test_the_first_violation_of_a_rule_is_told_and_further_ones_counted() -> None:
    findings = Findings()
    assert not findings
    assert findings.of("money") is None
    for text in ("first", "second", "third"):
        findings.violated("money", text)
    assert findings
    assert findings.of("money") == "first; and 2 more"


# The command -----------------------------------------------------------------------------------------------


def command(*words: str) -> int:
    return main(["--url", "http://fake", "--accounts", str(ACCOUNTS), "--clients", "8", "--seconds", "0.2", *words])


def test_it_holds(bank: FakeBank, capsys: pytest.CaptureFixture[str]) -> None:
    assert command() == 0
    out = capsys.readouterr().out
    assert "verdict    the audit holds\n" in out
    assert "longest pause without replies" in out


def test_it_does_not_hold(bank: FakeBank, capsys: pytest.CaptureFixture[str]) -> None:
    bank.remembers = False
    assert command() == 1
    out = capsys.readouterr().out
    assert "WRONG      replies kept: " in out
    assert "verdict    the audit does NOT hold\n" in out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--clients", "0"], "--clients is a number from 1 to 256, got 0"),
        (["--seconds", "0"], "--seconds is a number from 0.1"),
        (["--accounts", "1"], "--accounts is a number from 2 to 10000"),
        (["--wait", "1e9"], "--wait is a number from 0.1 to 600"),
    ],
)
def test_wrong_options(words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command(*words)
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err


def test_a_url_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--url", "ftp://x") == 2
    assert "a URL starts with one of" in capsys.readouterr().err


def test_another_app(bank: FakeBank, capsys: pytest.CaptureFixture[str]) -> None:
    bank.before = lambda number, function: failing("unknown_operator")
    assert command() == 2
    assert "what answers at http://fake is not examples.bank:app: unknown_operator" in capsys.readouterr().err


def test_nobody_there(bank: FakeBank, capsys: pytest.CaptureFixture[str]) -> None:
    def away(number: int, function: str) -> Reply | None:
        raise ConnectionError("nobody listens")

    bank.before = away
    assert command("--wait", "0.1") == 3
    assert "no bank answered at http://fake within 0.1 s: nobody listens" in capsys.readouterr().err


def test_a_bank_that_is_there_after_a_while(bank: FakeBank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("examples.bank_audit.scenario.REACH_SECONDS", 0.001)
    bank.before = lambda number, function: failing("unavailable") if number < 5 else None
    assert command() == 0


def test_a_signal_ends_the_transfers_and_what_was_done_is_audited(
    bank: FakeBank, capsys: pytest.CaptureFixture[str]
) -> None:
    bank.after = lambda number: os.kill(os.getpid(), signal.SIGTERM) if number == OPENINGS + 20 else None
    assert command("--seconds", "1000") == 0
    assert "the audit holds" in capsys.readouterr().out


def test_a_second_signal_ends_it(bank: FakeBank, capsys: pytest.CaptureFixture[str]) -> None:
    def twice(number: int) -> None:
        if number in (OPENINGS + 20, OPENINGS + 21):
            os.kill(os.getpid(), signal.SIGTERM)

    bank.after = twice
    assert command("--seconds", "1000") == 130
    assert "nothing was audited" in capsys.readouterr().err


def failing(code: str) -> Reply:
    return Reply(None, ReplyError("RequestRejected", code, code), 0, 0, 0, "id")
