"""Locust users of the hotel site: `locust -f benchmarks/deathstar/hotel/locustfile.py`. Its data must be loaded."""

from benchmarks.deathstar.hotel.options import add_options, make_workload
from benchmarks.deathstar.hotel.services.flight import NoSeat
from benchmarks.deathstar.hotel.services.hotel import NoRoom
from benchmarks.deathstar.hotel.services.user import WrongPassword
from benchmarks.driver.locust_user import WorkloadUser, workload_of


class Guest(WorkloadUser):
    """Searches, asks for recommendations, logs in and reserves."""

    workload = workload_of(add_options, make_workload)
    expected_aborts = frozenset({NoRoom.__name__, NoSeat.__name__, WrongPassword.__name__})
