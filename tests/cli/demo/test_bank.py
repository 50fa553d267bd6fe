"""The demo's calls: repeatable, crowded, and never from an account to itself."""

from collections import Counter
from itertools import islice

from styx.cli.demo.bank import AMOUNT_MAX, account_key, balances, openings, transfers


def test_the_seed_decides() -> None:
    first, again, other = (list(islice(transfers(50, seed), 100)) for seed in (1, 1, 2))
    assert first == again != other


def test_transfers_crowd_on_few_accounts_and_have_two_ends() -> None:
    calls = list(islice(transfers(1_000, 1), 5_000))
    ends = Counter(key for call in calls for key in (call.key, call.arguments[0]))
    assert sum(count for _, count in ends.most_common(10)) > 2_500  # of 10,000 ends
    assert len(ends) > 500
    for call in calls:
        assert call.key != call.arguments[0]
        assert 1 <= call.arguments[1] <= AMOUNT_MAX


def test_two_accounts_are_enough() -> None:
    assert {call.key for call in islice(transfers(2, 1), 20)} == {account_key(0), account_key(1)}


def test_every_account_is_opened_and_asked() -> None:
    keys = [account_key(number) for number in range(7)]
    assert [call.key for call in openings(7)] == keys == [call.key for call in balances(7)]
