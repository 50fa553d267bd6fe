"""Fixtures of the command line's tests: the application called in-process, and a gateway for it to call."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from anyio.from_thread import start_blocking_portal

from styx.cli import main
from tests.gateway.fake_engine import FakeEngine
from tests.gateway.running import running


class Ran(NamedTuple):
    """A command's exit code and what it printed."""

    status: int
    out: str
    err: str


Styx = Callable[..., Ran]


@pytest.fixture
def styx(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Styx:
    """Runs `styx WORDS…` in this process."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("STYX_DEBUG", raising=False)

    def run(*words: str) -> Ran:
        status = main(words)
        return Ran(status, *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[FakeEngine, str]]:
    """A gateway in a thread of its own, in front of an engine without state."""
    engine = FakeEngine()
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(running(engine)) as server,
    ):
        yield engine, server.url


@pytest.fixture
def engine(served: tuple[FakeEngine, str]) -> FakeEngine:
    """The engine behind `url`, as good as new."""
    engine, _ = served
    engine.reset()
    return engine


@pytest.fixture
def url(served: tuple[FakeEngine, str], engine: FakeEngine) -> str:
    return served[1]
