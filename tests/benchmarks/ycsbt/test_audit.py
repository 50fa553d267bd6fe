"""The audit finds what is lost, doubled or done by halves, and nothing where there is nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

import styx
from benchmarks.driver.workload import Audit, Generator, Planned
from benchmarks.ycsbt.audit import accounts_to_read
from benchmarks.ycsbt.bank import Account
from benchmarks.ycsbt.settings import Settings
from benchmarks.ycsbt.witness import VIOLATIONS_KEPT_MAX, Witness
from benchmarks.ycsbt.workload import YcsbT
from styx.client.embedded import EmbeddedClient
from styx.messages import Reply, ReplyError

REQUESTS = 250
OPTIONS: dict[str, Any] = {"keys": 40, "hot": 20, "balance": 500, "read_only": 0.2, "read_keys": 20, "overdraft": 0.1}

Tampering = Callable[[EmbeddedClient, Generator, list[Planned]], Awaitable[None]]


async def _nothing(client: EmbeddedClient, generator: Generator, committed: list[Planned]) -> None: ...


def audited(tamper: Tampering = _nothing, **options: Any) -> Audit:
    """A run, what `tamper` does to the state or to the witness, and the audit; `committed` are transfers."""

    async def run() -> Audit:
        workload = YcsbT(Settings(**OPTIONS | options))
        async with styx.embedded(workload.app) as client:
            for loading in workload.initial():
                await client.load(loading.operator, loading.pairs)
            generators = [workload.generator(number, 2, seed=1) for number in range(2)]
            committed = []
            for generator in generators:
                sent = [generator.next() for _ in range(REQUESTS)]
                replies = await asyncio.gather(
                    *(client.submit(p.operator, p.key, p.function, *p.arguments) for p in sent)
                )
                for planned, reply in zip(sent, replies, strict=True):
                    generator.answered(planned, reply)
                    if reply.error is None and planned.kind == "transfer":
                        committed.append(planned)
            await tamper(client, generators[0], committed)
            # As it is between two processes.
            witnesses = [msgspec.msgpack.decode(msgspec.msgpack.encode(g.witness())) for g in generators]
            return await workload.audit(client, witnesses)

    return asyncio.run(run())


async def change(client: EmbeddedClient, key: int, by: int) -> None:
    balance = await client.call("account", key, "read")
    await client.load("account", [(key, Account(balance + by))], replace=True)


def committed_reply() -> Reply:
    return Reply(0, None, 1, 0, 1, "r")


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("partitions", [None, 3])
def test_a_sound_run_passes(wait: bool, partitions: int | None) -> None:
    audit = audited(wait=wait, partitions=partitions)
    assert audit.violations == []
    assert any("all 40 accounts" in text for text in audit.checked)
    assert any("20000, as at the start" in text for text in audit.checked)
    assert any("100 reads of all accounts that take part" in text for text in audit.checked)


def test_a_lost_credit_is_found() -> None:
    async def tamper(client: EmbeddedClient, generator: Generator, committed: list[Planned]) -> None:
        creditor, amount = committed[0].arguments
        await change(client, creditor, -amount)

    violations = audited(tamper).violations
    assert len(violations) == 2
    assert "rather than" in violations[0]
    assert "lost" in violations[1]


def test_a_transfer_that_was_lost_or_done_twice_as_a_whole_is_found() -> None:
    for times in (-1, 1):

        async def tamper(
            client: EmbeddedClient, generator: Generator, committed: list[Planned], times: int = times
        ) -> None:
            creditor, amount = committed[0].arguments
            await change(client, committed[0].key, -times * amount)
            await change(client, creditor, times * amount)

        violations = audited(tamper).violations
        assert len(violations) == 2
        assert all("rather than" in text and text.startswith("account ") for text in violations)


def test_a_transfer_that_the_witness_forgot_or_counted_twice_is_found() -> None:
    async def count_again(client: EmbeddedClient, generator: Generator, committed: list[Planned]) -> None:
        generator.answered(committed[0], committed_reply())

    async def send_unseen(client: EmbeddedClient, generator: Generator, committed: list[Planned]) -> None:
        await client.call("account", 0, "transfer", 1, 1)

    assert len(audited(count_again).violations) == 2
    assert len(audited(send_unseen).violations) == 2


def test_a_debit_that_an_abort_left_is_found() -> None:
    async def tamper(client: EmbeddedClient, generator: Generator, committed: list[Planned]) -> None:
        aborted = Planned("transfer", committed[0].operator, 39, "transfer", (38, 50))
        generator.answered(aborted, Reply(None, ReplyError("InsufficientFunds", "", "aborted"), 1, 0, 0, "r"))
        await change(client, 39, -50)

    # Only the touched accounts are read, and these two are none of the hot ones.
    assert len(audited(tamper, audit_keys=0).violations) == 2


def test_a_transfer_without_an_answer_may_have_happened_or_not() -> None:
    def tamper(sent: bool) -> Tampering:
        async def tampering(client: EmbeddedClient, generator: Generator, committed: list[Planned]) -> None:
            unanswered = Planned("transfer", committed[0].operator, 30, "transfer", (31, 70))
            generator.unknown(unanswered)
            if sent:
                await client.call("account", 30, "transfer", 31, 70)

        return tampering

    for sent in (False, True):
        audit = audited(tamper(sent))
        assert audit.violations == []
        assert any(text.startswith("1 transfers without an answer, of 1 debtors") for text in audit.checked)


def test_a_transfer_without_an_answer_that_happened_by_half_is_found() -> None:
    async def tamper(client: EmbeddedClient, generator: Generator, committed: list[Planned]) -> None:
        generator.unknown(Planned("transfer", committed[0].operator, 30, "transfer", (31, 70)))
        await change(client, 31, 70)

    assert audited(tamper).violations == ["the 40 accounts read have 20070 together rather than 20000: 70 were made"]


def test_a_transfer_without_an_answer_that_happened_twice_is_found() -> None:
    async def tamper(client: EmbeddedClient, generator: Generator, committed: list[Planned]) -> None:
        generator.unknown(Planned("transfer", committed[0].operator, 30, "transfer", (31, 70)))
        for _ in range(2):
            await client.call("account", 30, "transfer", 31, 70)

    assert audited(tamper).violations == [
        "account 30 has 360 rather than 430 to 500",
        "account 31 has 640 rather than 500 to 570",
    ]


def audited_without_a_run(accounts: int, balance: int, witnesses: list[Any]) -> Audit:
    async def run() -> Audit:
        workload = YcsbT(Settings(**OPTIONS))
        async with styx.embedded(workload.app) as client:
            await client.load("account", ((key, Account(balance)) for key in range(accounts)))
            return await workload.audit(client, witnesses)

    return asyncio.run(run())


def test_an_account_that_is_gone_is_found() -> None:
    assert audited_without_a_run(39, 500, [Witness(Settings(**OPTIONS)).report()]).violations == [
        "account 39: NoSuchAccount: there is no account 39",
        "the 40 accounts read have 19500 together rather than 20000: 500 were lost",
    ]
    many = audited_without_a_run(10, 500, [Witness(Settings(**OPTIONS)).report()]).violations
    assert "and 10 more accounts of 40 read" in many


def test_without_a_witness_the_sum_is_still_looked_at() -> None:
    assert audited_without_a_run(40, 500, []).violations == []
    assert "each is there" in audited_without_a_run(40, 500, []).checked[0]
    assert audited_without_a_run(40, 501, []).violations == [
        "the 40 accounts read have 20040 together rather than 20000: 40 were made"
    ]


class BrokenClient(EmbeddedClient):
    """Answers no read of account 2, and rejects the first one of account 3."""

    def __init__(self, workload: YcsbT) -> None:
        super().__init__(styx.embedded(workload.app).engine)
        self.asked: Counter[int] = Counter()

    def submit(self, operator: Any, key: Any, function: Any, *args: Any, **options: Any) -> Awaitable[Reply]:
        self.asked[key] += 1
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        if key == 2:
            future.set_exception(TimeoutError("no reply"))
        elif (key, self.asked[key]) == (3, 1):
            future.set_result(Reply(None, ReplyError("RequestRejected", "full", "overloaded"), 0, 0, 0, "r"))
        else:
            return super().submit(operator, key, function, *args, **options)
        return future


def test_reads_are_repeated_and_an_account_that_cannot_be_read_is_a_violation() -> None:
    async def run() -> tuple[Audit, Counter[int]]:
        workload = YcsbT(Settings(keys=4, balance=10))
        async with BrokenClient(workload) as client:
            await client.load("account", ((key, Account(10)) for key in range(4)))
            return await workload.audit(client, []), client.asked

    audit, asked = asyncio.run(run())
    assert audit.violations == [
        "account 2: could not be read: no reply",
        "the 4 accounts read have 30 together rather than 40: 10 were lost",
    ]
    assert asked == {0: 1, 1: 1, 2: 3, 3: 2}


class LateClient(EmbeddedClient):
    """A transfer from account 1 to account 0 stands in the log before the first read of account 1, and has not run."""

    late = True

    def submit(self, operator: Any, key: Any, function: Any, *args: Any, **options: Any) -> Awaitable[Reply]:
        if key == 1 and self.late:
            self.late = False
            super().submit(operator, 1, "transfer", 0, 7)
        return super().submit(operator, key, function, *args, **options)


def test_a_transfer_without_an_answer_has_happened_before_the_balances_are_read_if_it_happens() -> None:
    settings = Settings(keys=4, balance=10)
    workload = YcsbT(settings)
    witness = Witness(settings)
    witness.unknown(Planned("transfer", workload.app.operators["account"], 1, "transfer", (0, 7)))

    async def run() -> Audit:
        async with LateClient(styx.embedded(workload.app).engine) as client:
            await client.load("account", ((key, Account(10)) for key in range(4)))
            return await workload.audit(client, [witness.report()])

    assert asyncio.run(run()).violations == []


def test_all_accounts_are_read_if_they_are_few_else_the_touched_ones_and_a_sample() -> None:
    few, many = Settings(keys=100, audit_keys=100), Settings(keys=101, audit_keys=100)
    assert list(accounts_to_read(few, [5])) == list(range(100))
    sampled = accounts_to_read(many, [5, 100])
    assert len(sampled) == 100
    assert {5, 100} <= set(sampled)
    assert accounts_to_read(many, [5, 100]) == sampled
    assert list(accounts_to_read(Settings(keys=101, audit_keys=2), [5, 6, 7])) == [5, 6, 7]


@pytest.mark.parametrize(
    ("planned", "reply"),
    [
        # More than there is.
        (("transfer", 0, "transfer", (1, 20_001)), committed_reply()),
        (("transfer", 0, "transfer", (1, 5)), committed_reply()._replace(result=-5)),
        (("transfer", 0, "transfer", (1, 5)), Reply(None, ReplyError("NoSuchAccount", "", "aborted"), 1, 0, 0, "r")),
        (("read", 0, "read", ()), committed_reply()._replace(result=-1)),
        (("read", 0, "read", ()), Reply(None, ReplyError("InsufficientFunds", "", "aborted"), 1, 0, 0, "r")),
        (("read", 0, "read_many", ([1, 2],)), committed_reply()._replace(result=[500, 500])),
        (("read", 0, "read_many", ([1, 2],)), committed_reply()._replace(result=None)),
        # All accounts that take part, with one unit too few.
        (("read", 0, "read_many", (list(range(1, 20)),)), committed_reply()._replace(result=[500] * 19 + [499])),
    ],
)
def test_a_reply_that_no_serial_order_gives_is_noted(planned: tuple[Any, ...], reply: Reply) -> None:
    settings = Settings(**OPTIONS)
    kind, key, function, arguments = planned
    witness = Witness(settings)
    request = Planned(kind, YcsbT(settings).app.operators["account"], key, function, arguments)
    for _ in range(VIOLATIONS_KEPT_MAX + 1):
        witness.answered(request, reply)
    report = witness.report()
    assert len(report["violations"]) == VIOLATIONS_KEPT_MAX
    assert report["counts"]["violations"] == VIOLATIONS_KEPT_MAX + 1
    violations = audited_without_a_run(40, 500, [report]).violations
    assert violations[:VIOLATIONS_KEPT_MAX] == report["violations"]
    assert "and 1 replies more that no serial order can give" in violations


def test_an_answer_of_any_other_kind_is_not_noted() -> None:
    settings = Settings(**OPTIONS)
    operator = YcsbT(settings).app.operators["account"]
    witness = Witness(settings)
    rejected = Reply(None, ReplyError("RequestRejected", "", "overloaded"), 0, 0, 0, "r")
    witness.answered(Planned("read", operator, 0, "read", ()), rejected)
    witness.answered(Planned("transfer", operator, 0, "transfer", (1, 5)), rejected)
    witness.unknown(Planned("read", operator, 0, "read", ()))
    assert witness.report()["violations"] == []
    assert witness.report()["unknown"] == []
