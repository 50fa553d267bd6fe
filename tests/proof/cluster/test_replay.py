"""The same requests and epoch records on 1, 2 and 4 workers give the same replies and the same state."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from msgspec.structs import replace

from proof.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.replay import Replayed, check_same, compare
from styx.messages import ReplyRecord
from styx.testing import SerializabilityViolation

REPLY = ReplyRecord("r", 1, 1, 1, 1, b"\x01")


@pytest.mark.slow
def test_any_number_of_workers_makes_the_same_of_a_log(options: ClusterOptions) -> None:
    asyncio.run(compare(ClusterUnderTest(options), 6.0, [1, 2, 4], Random(options.name)))


@pytest.mark.parametrize(
    "replayed",
    [
        Replayed([REPLY], "another"),
        Replayed([], "state"),
        Replayed([replace(REPLY, epoch=2)], "state"),
        Replayed([REPLY, replace(REPLY, sequence=2)], "state"),
    ],
)
def test_a_difference_is_found(replayed: Replayed) -> None:
    check_same(Replayed([REPLY], "state"), Replayed([REPLY], "state"))
    with pytest.raises(SerializabilityViolation):
        check_same(Replayed([REPLY], "state"), replayed)
