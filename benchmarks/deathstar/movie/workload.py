"""The movie review as a workload for the driver: its data set, its requests and its audit, of one set of options."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from benchmarks.deathstar.movie import app as application
from benchmarks.deathstar.movie.audit import audit
from benchmarks.deathstar.movie.catalogue import catalogue
from benchmarks.deathstar.movie.generator import MovieGenerator
from benchmarks.deathstar.movie.settings import Settings
from benchmarks.driver.workload import Audit, Generator, Loading
from styx.client.base import Client


class Movie:
    """A `Workload`."""

    name = "movie"
    app = application.app
    app_target = f"{application.__name__}:app"

    def __init__(self, settings: Settings) -> None:
        self._options = settings
        self.settings: dict[str, Any] = asdict(settings)

    def initial(self) -> Iterable[Loading]:
        """See `Workload.initial`: users and movies, without any review."""
        return catalogue(self._options.users, self._options.movies)

    def generator(self, client: int, clients: int, seed: int) -> Generator:
        """See `Workload.generator`."""
        return MovieGenerator(self._options, random.Random(f"{self.name} {seed} {client} of {clients}"))

    async def audit(self, client: Client, witnesses: list[Any]) -> Audit:
        """See `Workload.audit`."""
        return await audit(client, self._options, witnesses)
