"""The host of the control plane carries out an order to set a request aside: done, refused or failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import pytest

from styx.coordinator.control_events import AsidePut, Event, PutAside
from styx.errors import ConfigurationError, EngineFailed
from styx.host.control_host import ControlHost, ControlPorts

T = TypeVar("T")


class Nothing:
    """Stands for what no effect of these tests reaches."""

    def __getattr__(self, name: str) -> None:
        return None


class AtOnce(Nothing):
    """Does what is submitted."""

    def submit(
        self, what: str, run: Callable[[], T], ended: Callable[[T], None], failed: Callable[[OSError], None]
    ) -> None:
        try:
            found = run()
        except OSError as error:
            failed(error)
        else:
            ended(found)


@pytest.mark.parametrize(
    ("error", "done", "text", "failed"),
    [
        (None, True, "it is set aside", False),
        (ConfigurationError("it was answered"), False, "it was answered", False),
        (EngineFailed("the log is damaged"), False, "the log is damaged", True),
        (OSError("nobody there"), False, "log or store out of reach: nobody there", True),
    ],
)
def test_a_request_is_set_aside_or_refused_or_that_fails(
    error: Exception | None, done: bool, text: str, failed: bool
) -> None:
    def put_aside(place: str, dry_run: bool) -> str:
        assert (place, dry_run) == ("3:17", True)
        if error is not None:
            raise error
        return text

    given: list[Event] = []
    nothing = cast(Any, Nothing())
    host = ControlHost(nothing, nothing, ControlPorts(nothing, cast(Any, AtOnce()), nothing, put_aside), given.append)
    effect = PutAside(7, "3:17", dry_run=True)
    host.do(effect)
    assert given == [AsidePut(effect, done, text, failed)]
