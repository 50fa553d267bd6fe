"""Locust users in the marketplace: `locust -f benchmarks/marketplace/locustfile.py`. The data must be loaded."""

from benchmarks.driver.locust_user import WorkloadUser, workload_of
from benchmarks.marketplace.options import add_options, make_workload


class Visitor(WorkloadUser):
    """Fills carts and checks them out, changes prices, delivers, reads dashboards, as the mix says."""

    follows = True
    workload = workload_of(add_options, make_workload)
