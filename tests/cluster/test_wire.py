"""The messages of a cluster's processes: each is heard by somebody."""

from __future__ import annotations

from typing import get_args

import msgspec

from styx.cluster import wire
from styx.protocol import changes, frames, messages, reads
from styx.protocol.frames import WorkerMessage
from styx.protocol.reads import PartEnded

HEARD = {
    "worker": wire.WorkerHears,
    "coordinator": wire.CoordinatorHears,
    "gateway": wire.GatewayHears,
    "operator": wire.OperatorHears,
    "peer": wire.PeerHears,
    "worker that is asked to read": wire.FromGateway,
    "gateway that has asked": wire.FromWorker,
}


def test_each_message_is_heard_by_somebody() -> None:
    modules = (wire, messages, frames, reads, changes)
    tagged = {each for module in modules for each in vars(module).values() if _is_message(each)}
    within = {*get_args(WorkerMessage), *get_args(PartEnded)}
    assert tagged == within | {each for hears in HEARD.values() for each in get_args(hears) or (hears,)}


def _is_message(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__struct_config__.tag is not None
