"""Connections of a simulated coordinator to workers and operators, as its control plane reaches them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from proof.simulation.versions import opened
from styx.coordinator.control_events import (
    A_WORKER,
    Admit,
    Announce,
    Answer,
    Disconnect,
    HandOut,
    PackageOffered,
    RolloutEnded,
    Serve,
    StandBy,
    TurnAway,
)
from styx.deployment.versions import load_version
from styx.set_aside.places import read

if TYPE_CHECKING:
    from proof.simulation.coordinator_process import CoordinatorProcess
    from proof.simulation.worker_process import WorkerProcess

FIRST = b"0"
"""The package that every worker was started with."""
OFFER_AGAIN_S = 0.2

_encode = msgspec.msgpack.Encoder().encode


class ControlLinks:
    """Of one incarnation of the coordinator. As `Connections`; nobody has a gateway."""

    def __init__(self, coordinator: CoordinatorProcess) -> None:
        self._coordinator = coordinator
        self._world = coordinator.world

    def _worker(self, number: int) -> WorkerProcess | None:
        host = self._world.numbered(number)
        return host if host is not None and host.link is self._coordinator else None

    def admit(self, effect: Admit) -> None:
        """The worker offers what it was started with."""
        self._offer()

    def _offer(self) -> None:
        world = self._world
        offer = PackageOffered(A_WORKER, opened(FIRST))
        world.time.after(world.rng.random() * 0.001, self._coordinator.give, offer)

    def turn_away(self, effect: TurnAway) -> None:
        """It tries again."""
        self._world.cut_off(self._coordinator, effect.worker)

    def disconnect(self, effect: Disconnect) -> None:
        """It registers anew; the coordinator notices that it is lost. What held it up is set aside by then."""
        assert read(self._world.store.objects), "a worker is let go for a request that the store has not set aside"
        self._world.cut_off(self._coordinator, effect.worker)

    def hand_out(self, effect: HandOut) -> None:
        """In order with all else that the worker is told; only what the store has may take effect."""
        content, host = effect.package.content, self._worker(effect.worker)
        if effect.version > 0:
            stored = load_version(self._world.store.objects, effect.version)
            assert stored == content, f"version {effect.version} is handed out, and the store does not have it"
        if host is not None:
            data = _encode((effect.version, content))
            self._world.network.send(self._coordinator.name, host.name, host.receive_code, data)

    def stand_by(self, effect: StandBy) -> None:
        """The worker hears whether slots are kept from it."""
        host = self._worker(effect.worker)
        if host is not None:
            hears = host
            deliver = lambda _: setattr(hears, "spare", effect.spare)  # noqa: E731 - it fits a line
            self._world.network.send(self._coordinator.name, host.name, deliver, b"")

    def serve(self, effect: Serve) -> None:
        """Nobody has a gateway."""

    def announce(self, effect: Announce) -> None:
        """Clients hear of it: it is no version that was refused."""
        assert effect.version not in self._world.versions.never, f"version {effect.version} was refused, and runs"

    def answer(self, effect: Answer) -> None:
        """To an operator; a worker's offer that came to nothing is made again by another one."""
        if effect.to != A_WORKER:
            self._world.operators.answered(self._coordinator, effect)
        elif not effect.done:
            self._world.time.after(OFFER_AGAIN_S, self._offer)

    def rollout_ended(self, effect: RolloutEnded) -> None:
        """As `Operators.rollout_ended`."""
        self._world.operators.rollout_ended(self._coordinator, effect)
