"""Locust users that transfer money: `locust -f benchmarks/ycsbt/locustfile.py`. The accounts must be loaded."""

from benchmarks.driver.locust_user import WorkloadUser, workload_of
from benchmarks.ycsbt.bank import InsufficientFunds
from benchmarks.ycsbt.options import add_options, make_workload


class Customer(WorkloadUser):
    """Transfers from one account to another, or reads accounts."""

    workload = workload_of(add_options, make_workload)
    expected_aborts = frozenset({InsufficientFunds.__name__})
