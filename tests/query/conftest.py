"""The data directory of a filled app, with two snapshots, and what its functions have read last."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

import pytest

import styx
from styx.query.schema import Schema, of_app, of_description
from styx.query.source import Source, of_directory
from tests.query.shop import Told, app, change, fill


class Filled(NamedTuple):
    """A directory and its content."""

    directory: Path
    told: Told

    @property
    def source(self) -> Source:
        """Its newest snapshot."""
        return of_directory(self.directory)

    @property
    def by_app(self) -> Schema:
        """With the app's types."""
        return of_app(app)

    @property
    def by_description(self) -> Schema:
        """By what is stored of the app alone."""
        return of_description(self.source.description)


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """Nothing changes it."""
    directory = tmp_path_factory.mktemp("look")

    async def run() -> Told:
        async with styx.embedded(app, directory, n_slots=5) as client:
            await fill(client)
        async with styx.embedded(app, directory, n_slots=5) as client:
            return await change(client)

    return Filled(directory, asyncio.run(run()))
