"""Requests are what the options ask for: the mixture, the pairs, the slots, the same ones for the same seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from benchmarks.driver.workload import Planned
from benchmarks.ycsbt.generator import BLOCK
from benchmarks.ycsbt.settings import AMOUNT_MAX, Settings
from benchmarks.ycsbt.workload import YcsbT
from styx import ConfigurationError

COUNT = 20 * BLOCK


def planned(client: int = 0, clients: int = 1, seed: int = 1, **options: Any) -> list[Planned]:
    generator = YcsbT(Settings(**options)).generator(client, clients, seed)
    return [generator.next() for _ in range(COUNT)]


def transfers(requests: list[Planned]) -> Iterator[tuple[int, int, int]]:
    return ((request.key, *request.arguments) for request in requests if request.kind == "transfer")


def test_a_transfer_is_between_two_accounts_and_debtors_are_uniform() -> None:
    requests = planned(keys=20, zipf=0.99)
    assert {request.function for request in requests} == {"transfer"}
    debtors: Counter[int] = Counter()
    for debtor, creditor, amount in transfers(requests):
        assert debtor != creditor
        assert {debtor, creditor} <= set(range(20))
        assert 1 <= amount <= AMOUNT_MAX or amount == 20 * 1_000_000 + 1
        debtors[debtor] += 1
    # Uniform but for its being another account than the creditor: the most popular one pays less often.
    assert len(debtors) == 20
    assert max(debtors.values()) < 1.5 * COUNT / 20


def test_creditors_follow_the_zipf_distribution() -> None:
    uniform = Counter(creditor for _, creditor, _ in transfers(planned(keys=100)))
    skewed = Counter(creditor for _, creditor, _ in transfers(planned(keys=100, zipf=0.99)))
    first = COUNT / sum(k**-0.99 for k in range(1, 101))
    assert max(uniform.values()) < 2 * COUNT / 100
    assert abs(max(skewed.values()) - first) < 0.1 * first
    assert skewed.most_common(1)[0][0] == 0


@pytest.mark.parametrize("n_slots", [2, 16])
@pytest.mark.parametrize("zipf", [0.0, 0.9])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.75, 1.0])
def test_the_share_between_partitions_is_exact(share: float, zipf: float, n_slots: int) -> None:
    requests = planned(keys=1000, multi_partition=share, n_slots=n_slots, zipf=zipf)
    operator = requests[0].operator
    apart = 0
    for debtor, creditor, _ in transfers(requests):
        assert debtor != creditor
        apart += operator.partition_of(debtor, n_slots) != operator.partition_of(creditor, n_slots)
    assert apart == round(share * COUNT)


def test_the_share_between_partitions_is_by_the_operators_own_partitions() -> None:
    requests = planned(keys=1000, multi_partition=0.5, partitions=2, n_slots=16)
    operator = requests[0].operator
    assert operator.n_partitions == 2
    apart = [operator.partition_of(d, 16) != operator.partition_of(c, 16) for d, c, _ in transfers(requests)]
    assert sum(apart) == COUNT // 2


def test_accounts_that_cannot_have_the_share_between_partitions_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="are in one partition"):
        YcsbT(Settings(multi_partition=0.5, partitions=1))
    with pytest.raises(ConfigurationError, match="no transfer can stay in one"):
        YcsbT(Settings(keys=2, multi_partition=0.5, n_slots=4096))


def test_who_is_alone_in_its_partition_takes_part_in_no_transfer_that_stays_in_one() -> None:
    requests = planned(keys=5, multi_partition=0.0, n_slots=4)
    operator = requests[0].operator
    assert 1 in Counter(operator.partition_of(key, 4) for key in range(5)).values()
    for debtor, creditor, _ in transfers(requests):
        assert debtor != creditor
        assert operator.partition_of(debtor, 4) == operator.partition_of(creditor, 4)


def test_the_mixture_is_exact() -> None:
    requests = planned(read_only=0.3, read_keys=3, overdraft=0.1)
    kinds = Counter(request.kind for request in requests)
    assert kinds == {"read": COUNT * 3 // 10, "transfer": COUNT * 7 // 10}
    assert sum(amount > AMOUNT_MAX for _, _, amount in transfers(requests)) == COUNT * 7 // 100


def test_reads_are_of_as_many_different_accounts_as_asked_for() -> None:
    for request in planned(read_only=1.0, read_keys=5, keys=6):
        assert request.function == "read_many"
        assert len({request.key, *request.arguments[0]}) == 5
    for request in planned(read_only=1.0, read_keys=1):
        assert (request.function, request.arguments) == ("read", ())


def test_only_hot_accounts_take_part() -> None:
    requests = planned(keys=1000, hot=10, read_only=0.5, read_keys=10, zipf=0.5)
    seen = {key for debtor, creditor, _ in transfers(requests) for key in (debtor, creditor)}
    assert len(seen) == 10
    for request in requests:
        if request.kind == "read":
            assert {request.key, *request.arguments[0]} == seen


def test_waiting_transfers_are_another_function_of_the_same_kind() -> None:
    assert {(p.kind, p.function) for p in planned(wait=True)} == {("transfer", "transfer_and_wait")}


def test_the_same_client_draws_the_same_and_another_one_does_not() -> None:
    same, again = ([p[2:] for p in planned(zipf=0.9)] for _ in range(2))
    assert same == again
    for other in (planned(client=1, clients=2, zipf=0.9), planned(seed=2, zipf=0.9)):
        assert [p[2:] for p in islice(other, 50)] != same[:50]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"keys": 1}, "at least 2 keys"),
        ({"balance": 0}, "1 or more"),
        ({"keys": 2**40, "balance": 2**40}, "can be 4194304 at most"),
        ({"zipf": 1.0}, "from 0 to 0.999"),
        ({"zipf": float("nan")}, "from 0 to 0.999"),
        ({"hot": 1}, "from 2 to"),
        ({"hot": 10_001}, "from 2 to"),
        ({"multi_partition": 1.5}, "--multi-partition is from 0 to 1"),
        ({"read_only": -0.1}, "--read-only is from 0 to 1"),
        ({"overdraft": 20}, "--overdraft is from 0 to 1"),
        ({"hot": 5, "read_keys": 6}, "from 1 to 5 accounts"),
        ({"partitions": 0}, "number of partitions"),
        ({"n_slots": 0}, "at least 1 slot"),
        ({"audit_keys": -1}, "0 accounts or more"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        Settings(**options)
