"""Outside calls of a generation: what the log holds of them goes with it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from weakref import ref

import pytest

from styx.cluster.worker.externals import ClusterExternals
from styx.model.limits import Limits

pytestmark = pytest.mark.anyio


class Outcomes(dict[bytes, bytes]):
    """Logged ones, whose end can be seen."""


async def test_logged_outcomes_are_freed_with_their_generation() -> None:
    """The next one reads them anew."""
    node = SimpleNamespace(
        topics=SimpleNamespace(externals="externals"), reports=SimpleNamespace(outside=lambda wanted, error: None)
    )
    session = SimpleNamespace(node=node, deployment=SimpleNamespace(limits=Limits()))
    externals = ClusterExternals(cast(Any, session), cast(Any, None))
    outcomes = Outcomes({b"key": b"outcome"})
    freed = ref(outcomes)
    externals.take(outcomes)
    del outcomes
    assert externals.outcome(b"key") == b"outcome"
    externals.stop()
    assert freed() is None
