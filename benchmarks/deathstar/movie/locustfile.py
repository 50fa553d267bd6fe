"""Locust users who review movies: `locust -f benchmarks/deathstar/movie/locustfile.py`. Its data must be loaded."""

from benchmarks.deathstar.movie.options import add_options, make_workload
from benchmarks.deathstar.movie.parts import TextTooLong, UnknownMovie
from benchmarks.driver.locust_user import WorkloadUser, workload_of


class Reviewer(WorkloadUser):
    """Composes reviews, and reads those of a movie or of a user."""

    workload = workload_of(add_options, make_workload)
    expected_aborts = frozenset({UnknownMovie.__name__, TextTooLong.__name__})
