"""Locust users at TPC-C's terminals: `locust -f benchmarks/tpcc/locustfile.py`. The rows must be loaded."""

from benchmarks.driver.locust_user import WorkloadUser, workload_of
from benchmarks.tpcc.new_order import ItemNotFound
from benchmarks.tpcc.options import add_options, make_workload


class Terminal(WorkloadUser):
    """Enters orders and payments, and whatever else is in the mix."""

    workload = workload_of(add_options, make_workload)
    expected_aborts = frozenset({ItemNotFound.__name__})
